# shellcheck shell=bash disable=SC1091
# What INSTALL.md takes for granted: a server.
source "$SOURCE/tests/docs/common.sh"
