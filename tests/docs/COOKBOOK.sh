# shellcheck shell=bash
# What COOKBOOK.md takes for granted: the programs of examples/ are at hand.
PATH=$PATH:$(dirname "$(command -v seen)")/../examples
