#!/usr/bin/env bash
# test_build.sh - seen build: lines to a filter, into a file or a pipe.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

seq 1 1000 >keys
seq 2001 3000 >others

# ---- Every kind: what went in is in, and little else ------------------------

for kind in bloom blocked cuckoo ribbon scalable set bitmap sorted; do
  run "$seen" build --kind $kind -o "$kind" keys
  expect_code 0; expect_out ''; expect_err "$kind: $kind filter of"
  run "$seen" verify "$kind"; expect_code 0
  run "$seen" check -c "$kind" keys; expect_out 1000
  run "$seen" check -c "$kind" others; expect; [ "$out" -le 20 ] || wrong "too many of others are in"
  # From a pipe into a pipe.
  n='-n 1000'; case $kind in bitmap) n='' ;; esac
  # shellcheck disable=SC2086
  expect; [ "$("$seen" build -q --kind $kind $n -o - <keys | "$seen" check -c - keys)" = 1000 ] || wrong "$kind in a pipe"
  run "$seen" build -q --kind $kind -o "$kind.2" keys
  expect; "$seen" check -c "$kind.2" keys | grep -qx 1000 || wrong "again"
  run "$seen" build -q -j3 --kind $kind -o - keys; mv .out one
  run "$seen" build -q --kind $kind -o - keys; expect; cmp -s .out one || wrong "threads change the bytes of $kind"
done

# ---- How many keys ----------------------------------------------------------

run "$seen" build --json -o f keys
expect_json kind '"blocked"'; expect_json capacity 1000; expect_json fpp 0.000; expect_json lines 1000
run "$seen" build --json -o f keys others -; expect_code 2; expect_err "add -n ITEMS"
run "$seen" build --json -o f keys others; expect_json capacity 2000
input=keys; run "$seen" build --json -o f; expect_json capacity 1000 # a regular file, too
run "$seen" build --json -o f - others; expect_json capacity 2000; expect_json lines 2000
unset input
run "$seen" check -qv f keys; expect_code 1
run bash -c "cat keys | '$seen' build -o none"
expect_failure "only files can be counted first: add -n ITEMS, or --kind scalable or --kind set"
expect_no_file none
run bash -c "cat keys | '$seen' build -o none --kind bloom -p 1%"; expect_failure "add -n ITEMS"
run bash -c "cat keys | '$seen' build -qo piped -n 1000"; expect_code 0; expect_silent
for kind in set scalable ribbon bitmap sorted; do
  run bash -c "cat keys | '$seen' build -qo piped --kind $kind"; expect_code 0
  run "$seen" check -qv piped keys; expect_code 1
done
run bash -c "cat keys | '$seen' build --json -o piped --bits 100000"; expect_code 0; expect_json fpp 0.000
run "$seen" build --json -o f --bits 20000 keys; expect_json bits 19968; expect_json capacity 1000
run "$seen" build --json -o f --bits 20000 --hashes 4 --kind bloom keys; expect_json bits 20000; expect_json hashes 4
for kind in ribbon sorted; do # as many bits as there are
  run bash -c "cat keys | '$seen' build --json -o f --kind $kind --bits 10000"; expect_code 0; expect_json fpp 0.00
  expect; [ "$("$seen" check -c f keys)" = 1000 ] || wrong "$kind of so many bits"
done
run "$seen" build --json -p 1e-6 -n 5000 -o f keys; expect_json capacity 5000
: >empty
run "$seen" build --json -o f empty; expect_code 0; expect_json lines 0
run "$seen" check f keys; expect_code 1; expect_out ''
for kind in ribbon bitmap set cuckoo sorted; do
  run "$seen" build --kind $kind -qo f empty; expect_code 0
  run "$seen" check f keys; expect_code 1
done
# More than was said: the rate rises, and a note says so.
run "$seen" build -n 100 -o f keys; expect_code 0; expect_err "more keys than the 100 it was planned for: use a larger -n"
run "$seen" build --kind cuckoo -n 100 -o none keys; expect_failure "the filter is full"
expect_no_file none
# A line that repeats is one key, also where filters count.
for _ in $(seq 1 20); do cat keys; done >repeated
run "$seen" build --kind cuckoo -n 1000 -qo f repeated; expect_code 0
run "$seen" remove -q f keys; run "$seen" check -c f keys; expect_out 0

# ---- Keys -------------------------------------------------------------------

printf 'a\0b\0' >nul
run "$seen" build -0 --json -o f nul; expect_json lines 2; expect_json capacity 2
run "$seen" check -0 -c f nul; expect_out 2
printf 'x\t1\ny\t2' >table
run "$seen" build -f 1 -qo f table; printf 'x\t7\nz\t1\n' >asked
run "$seen" check -f 1 f asked; expect_out $'x\t7'
printf 'AB\n-\n' >hex; printf 'ab\n\n-\n' >asked
run "$seen" build --hex -qo f hex; run "$seen" check --hex f hex; expect_out $'AB\n-'
printf '7\n' >seven; printf '007\n8\n' >asked
run "$seen" build --u64 -qo f seven; run "$seen" check --u64 f asked; expect_out 007
printf 'aBc\n' >mixed; printf 'AbC\n' >asked
run "$seen" build -i -qo f mixed; run "$seen" check -i f asked; expect_out AbC

# ---- Bitmaps ----------------------------------------------------------------

printf '0\n63\n64\n' >ids
run "$seen" build --kind bitmap --json -o ids.bitmap ids; expect_json bits 65; expect_json items 3
run "$seen" build --kind bitmap --bits 1000 --json -o f ids; expect_json bits 1000
run "$seen" build --kind bitmap --bits 64 -o none ids; expect_failure "ids:3: 64: is not below --bits"
expect_no_file none
printf '1\n4294967295\n' >far
run "$seen" build --kind bitmap --json -o f far; expect_json bits 4294967296
rm -f f
printf '1\n4294967296\n' >far
run "$seen" build --kind bitmap -o none far; expect_failure "far:2: 4294967296: is 2^32 or more: add --bits"
run "$seen" build --kind bitmap --bits 5G -qo f far; expect_code 0; rm -f f
printf 'x\n' >word
run "$seen" build --kind bitmap -o none word; expect_failure "word:1: x: expected a decimal number"
run "$seen" build --kind bitmap -n 5 -o none ids; expect_failure "-n 5: not for a bitmap"
run "$seen" build --kind bitmap -p 1% -o none ids; expect_failure "-p 0.01: a bitmap is exact"
run "$seen" build --kind bitmap --keyed -o none ids; expect_failure "--keyed: kind bitmap cannot be keyed"

# ---- Secrets ----------------------------------------------------------------

run "$seen" build --keyed -qo keyed keys; expect_code 0
run "$seen" check -c keyed keys; expect_out 1000
# A file with its secret is its maker's; without one, the umask's; what is there stays.
expect; [ "$(stat -c %a keyed)" = 600 ] || wrong "the mode of a file with a secret"
run bash -c "umask 022; '$seen' build -qo open keys; '$seen' build --keyed --secret-file kept -qo kept.seen keys"
expect; [ "$(stat -c %a open kept kept.seen | tr '\n' ' ')" = "644 600 644 " ] || wrong "modes"
run bash -c "chmod 640 keyed; echo another | '$seen' add -q keyed"; expect; [ "$(stat -c %a keyed)" = 640 ] || wrong "the mode changed"
run "$seen" build -q --secret-file secret -o apart keys; expect_code 0
expect; [ "$(stat -c %a secret)" = 600 ] || wrong "mode of a secret"
expect; grep -qxE '[0-9a-f]{32}' secret || wrong "a secret is 32 hex digits"
run "$seen" check -c apart keys; expect_failure "apart: its secret is kept apart: add --secret-file FILE"
run "$seen" check -c --secret-file secret apart keys; expect_out 1000
run "$seen" build -q --secret-file secret -o again keys
expect; cmp -s <("$seen" build -q --secret-file secret -o - keys) <("$seen" build -q --secret-file secret -o - keys) || wrong "the same secret makes the same bytes"
printf '%s' "$(cat secret)" >bare; run "$seen" check -c --secret-file bare apart keys; expect_out 1000
xxd -r -p secret raw 2>/dev/null || perl -e 'print pack("H*", <>)' secret >raw
run "$seen" check -c --secret-file raw apart keys; expect_out 1000
echo 00112233445566778899aabbccddeeff >other
run "$seen" check -c --secret-file other apart keys; expect_failure "apart: the secret in other is another one"
run "$seen" check -c --secret-file other blocked keys; expect_failure "blocked: is not keyed: leave out --secret-file"
run "$seen" check --secret-file nowhere apart keys; expect_failure "nowhere: No such file"
for bad in '' 0011 "$(cat other)00" 'zz112233445566778899aabbccddeeff'; do
  printf '%s\n' "$bad" >bad
  run "$seen" build --secret-file bad -o none keys; expect_failure "bad: is not a secret: expected 16 bytes or 32 hex digits"
done
run "$seen" build --secret-file no/such/place -o none keys; expect_failure "no/such/place: No such file"
# No secret is left behind by a build that failed.
run "$seen" build --secret-file fresh -o no/such/place keys; expect_failure "no/such/place"
expect_no_file fresh
run "$seen" build --secret-file fresh --hex -o none keys; expect_failure "keys:1"
expect_no_file fresh

# ---- Where to ---------------------------------------------------------------

run "$seen" build keys; expect_failure "-o is missing: expected -o FILE, or -o -"
run "$seen" build -o no/such/place keys; expect_failure "no/such/place"
mkdir directory
run "$seen" build -o directory keys; expect_failure "directory: is a directory"
run bash -c "'$seen' build -q -o - keys >/dev/full"; expect_code 2; expect_err "No space left"
run "$seen" build -o /dev/full keys; expect_code 2; expect_err "No space left"
run "$seen" build -q -o /dev/null keys; expect_code 0
run "$seen" build -q -o /dev/stdout keys; mv .out direct
run "$seen" check -c direct keys; expect_out 1000
expect; [ "$("$seen" build -q -o /dev/stdout keys | "$seen" check -c - keys)" = 1000 ] || wrong "/dev/stdout in a pipe"
expect; [ -L /dev/stdout ] || wrong "/dev/stdout is gone"
run "$seen" build --json -o - keys; expect_json capacity 1000 err
expect; "$seen" verify - <.out >/dev/null || wrong "JSON among the bytes"
if command -v script >/dev/null; then
  expect; script -qec "'$seen' build -o - keys" /dev/null </dev/null | grep -q "stdout is a terminal" || wrong "bytes on a terminal"
fi
run "$seen" build -o '' keys; expect_failure "-o is missing"
# An old file stays as it is until the new one is whole; its mode stays, too.
run "$seen" build -qo old keys; chmod 640 old; cp -p old before
run "$seen" build --hex -o old keys others; expect_code 2
expect; cmp -s old before || wrong "a failed build changed the old file"
run "$seen" build -qo old others; expect; [ "$(stat -c %a old)" = 640 ] || wrong "the mode of the old file"
run "$seen" check -qv old others; expect_code 1
# Also where the umask would take something away from a new file.
for verb in "build -qo old keys" "add -q old others" "build -q --kind set -o old keys" "add -q old others" "merge -qo old old old"; do
  chmod 664 old
  # shellcheck disable=SC2086
  umask 077; run "$seen" $verb; umask 022
  expect_code 0; expect; [ "$(stat -c %a old)" = 664 ] || wrong "a mode of 664"
done
expect; [ -z "$(find . -name '*new*')" ] || wrong "something lies beside"
# Nobody else's files are in the way: neither one that is called FILE.new, nor
# one that a link leads to from where the new file is written.
for kind in set cuckoo; do
  "$seen" build -q --kind $kind -n 5000 -o mine keys; cp mine mine.new
  run "$seen" add -q mine others; expect_code 0
  expect; cmp -s <("$seen" check mine.new keys others) keys || wrong "mine.new was taken"
done
echo precious >precious
ln -s precious trap.seen-new
run "$seen" build -qo trap keys; expect_failure "trap: create a file beside it:"
"$seen" build -q --kind set -o trapped keys
ln -s precious trapped.journal-0000000000000001
run "$seen" add -q trapped others; expect_code 0
expect; [ "$(cat precious)" = precious ] || wrong "wrote through a link"
rm mine.new trap.seen-new
# Through a symbolic link: the file behind it changes, the link stays.
mkdir place; run "$seen" build -qo place/real keys; ln -s place/real link
run "$seen" build -qo link others
expect; [ -L link ] || wrong "the link is gone"
run "$seen" check -qv place/real others; expect_code 1
# Also where there is nothing behind it yet.
mkdir place/deeper; ln -s deeper/new place/second; ln -s place/second first
ln -s "$PWD/place/far" absolute
for name in first:place/deeper/new absolute:place/far; do
  run "$seen" build -qo "${name%:*}" keys; expect_code 0
  expect; [ -L "${name%:*}" ] || wrong "the link is gone"
  run "$seen" check -qv "${name#*:}" keys; expect_code 1
  rm "${name#*:}"
  run "$seen" add -qn 5000 "${name%:*}" keys; expect_code 0
  run "$seen" check -qv "${name#*:}" keys; expect_code 1
done
ln -s loop loop; run "$seen" build -qo loop keys; expect_failure "loop: look at the file: Too many levels"
if [ "$(id -u)" -ne 0 ]; then
  mkdir closed; chmod 555 closed
  run "$seen" build -o closed/f keys; expect_failure "closed/f: create a file beside it: Permission denied"
fi
# The filter may replace its own input.
cp keys both; run "$seen" build -qo both both; expect_failure "both: is the input"; expect; cmp -s keys both || wrong "the keys are gone"

# ---- Mistakes ---------------------------------------------------------------

run "$seen" build -o none nowhere; expect_failure "nowhere: No such file"
run "$seen" build --kind nonsense -o none keys; expect_failure "--kind nonsense: expected a kind: bloom, blocked"
run "$seen" build -p 2 -o none keys; expect_failure "expected a rate"
run "$seen" build --hashes 300 -o none keys; expect_failure "--hashes"
run "$seen" build --bits 10 -o none keys; expect_failure "--bits 10: expected at least 512"
run "$seen" build --kind ribbon -p 1e-300 -o none keys; expect_code 2
run "$seen" build --window 5x -o none keys; expect_failure "expected a time with its unit"
run "$seen" build --window 0s -o none keys; expect_failure "expected at least 1ms"
run "$seen" build --json -j 1000 -o none keys; expect_failure "at most 256"
printf 'ff\nfg\n' >bad_hex
run "$seen" build --hex -o none bad_hex; expect_failure "bad_hex:2: fg: expected hex digits only"
expect_no_file none
run "$seen" build --help; expect_code 0; expect; grep -q 'seen build --kind ribbon' .out || wrong "help"

finish
