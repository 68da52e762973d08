#!/usr/bin/env bash
# test_remove.sh - seen remove: lines out of a filter file again.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

seq 1 1000 >keys
seq 1 400 >some
seq 401 1000 >rest
seq 5001 5010 >strange

for kind in cuckoo bitmap; do
  p='-p 1e-8'; [ $kind = bitmap ] && p=''
  # shellcheck disable=SC2086
  "$seen" build -q --kind $kind $p -o $kind keys
  run "$seen" remove $kind some
  expect_code 0; expect_out ''; expect_err "$kind: 400 keys removed, 0 not found"
  run "$seen" check -c $kind some; expect_out 0
  run "$seen" check -qv $kind rest; expect_code 1
  run "$seen" remove $kind some strange; expect_err "$kind: 0 keys removed, 410 not found"
  run "$seen" verify $kind; expect_code 0
  run "$seen" add -q $kind some; run "$seen" check -qv $kind keys; expect_code 1
  run "$seen" remove --json $kind some strange; expect_silent
  expect_json removed 400; expect_json absent 10; expect_json lines 410
  run "$seen" remove -q $kind strange; expect_silent
  input=rest; run "$seen" remove -q $kind; expect_code 0; unset input
  run "$seen" check -c $kind keys; expect_out 0
done

for kind in bloom blocked ribbon scalable set sorted; do
  "$seen" build -q --kind $kind -o $kind keys; cp $kind before
  run "$seen" remove $kind keys
  expect_failure "$kind: is of kind $kind, which cannot remove single keys; kinds cuckoo and bitmap can"
  expect; cmp -s $kind before || wrong "a refused removal changed the file"
done

# ---- Killed on the way: nothing that was removed comes back -----------------

"$seen" build -q --kind cuckoo -p 1e-8 -o c keys
mkfifo slow
"$seen" remove -q c slow &
pid=$!
exec 3>slow
cat some >&3
gone() { [ "$("$seen" check -c c some)" = 0 ]; }
wait_for gone
kill -KILL $pid; wait $pid 2>/dev/null
exec 3>&-
run "$seen" check -c c some; expect_out 0
run "$seen" check -qv c rest; expect_code 1
run "$seen" remove c /dev/null; expect_err "c: was not closed last time: 400 changes recovered from its journal"
run "$seen" check -c c some; expect_out 0
run "$seen" verify c; expect_code 0

# ---- Secrets and mistakes ---------------------------------------------------

"$seen" build -q --kind cuckoo --secret-file key -o apart keys
run "$seen" remove apart keys; expect_failure "apart: its secret is kept apart"
run "$seen" remove -q --secret-file key apart keys; expect_code 0
run "$seen" check -c --secret-file key apart keys; expect_out 0
run "$seen" remove; expect_failure "TARGET is missing"
run "$seen" remove - keys; expect_failure "stdin can only be read"
run "$seen" remove nowhere keys; expect_failure "nowhere: no such file"
run "$seen" remove c nowhere; expect_failure "nowhere: No such file"
echo x >word; run "$seen" remove bitmap word; expect_failure "word:1: x: expected a decimal number"
run "$seen" remove "redis://host/x?key=k" keys; expect_failure "is not the number of a database"
for option in -i '--key-type i32'; do
  # shellcheck disable=SC2086 # words
  run "$seen" remove bitmap keys $option; expect_code 2; expect_err "keys of a bitmap are decimal numbers: leave out ${option%% *}"
  # shellcheck disable=SC2086
  run "$seen" check bitmap keys $option; expect_code 2
done
run "$seen" build --kind bitmap -i -o none keys; expect_failure "keys of a bitmap are decimal numbers"
run "$seen" add --kind bitmap --bits 10 -i none keys; expect_failure "keys of a bitmap are decimal numbers"; expect_no_file none
run "$seen" check bitmap --u64 -i keys; expect_code 2
run "$seen" remove --help; expect_code 0

finish
