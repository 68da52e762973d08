# shellcheck shell=bash
# What OPERATIONS.md takes for granted.
printf '%s\n' evil worse | seen build -n 2 -o banned.seen
