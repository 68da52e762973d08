# shellcheck shell=bash disable=SC1091
# What MODULE.md takes for granted.
source "$SOURCE/tests/docs/common.sh"

cp "$SOURCE"/tests/vectors/guava/filter* urls.guava
head -c 2500000 /dev/zero >string
