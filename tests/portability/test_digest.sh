#!/usr/bin/env bash
# test_digest.sh DIGEST - every kernel of this machine prints the same digests.
set -euo pipefail
digest=${1:?usage: $0 PATH_OF_DIGEST}
wanted=$(SEEN_CPU=portable "$digest")
for kernel in avx2 neon ''; do
  got=$(SEEN_CPU=$kernel "$digest")
  diff <(echo "$wanted") <(echo "$got") || { echo "SEEN_CPU=$kernel differs" >&2; exit 1; }
done
echo "$(wc -l <<<"$wanted") digests agree"
