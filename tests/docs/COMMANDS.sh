# shellcheck shell=bash disable=SC1091
# What COMMANDS.md takes for granted.
source "$SOURCE/tests/docs/common.sh"

seq -f "http://host/%.0f" 1 1000 | tee keys.txt urls.txt events.txt >candidates.txt
rank >posts.txt
rank | sed 's/^/alice\t/' | tee shown.tsv >candidates.tsv
cp "$SOURCE"/tests/vectors/exposure-list/filter* shown.list
