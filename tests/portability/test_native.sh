#!/usr/bin/env bash
# test_native.sh - filters saved by WRITE_NATIVE, read by a reader in another
# language that was written from docs/FORMAT.md.
set -euo pipefail
write_native=$1
where=$(mktemp -d)
trap 'rm -rf "$where"' EXIT
"$write_native" "$where"
python3 "$(dirname "$0")/read_native.py" "$where"
