#!/usr/bin/env bash
# test_uniq.sh - seen uniq as users call it.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

# ---- What it is for ---------------------------------------------------------

printf 'a\nb\na\n' >aba
run "$seen" uniq aba
expect_code 0; expect_out $'a\nb'; expect_silent
input=aba; run "$seen" uniq; expect_out $'a\nb'
input=aba; run "$seen" uniq -; expect_out $'a\nb'
unset input
run "$seen" uniq aba aba; expect_out $'a\nb'
run "$seen" uniq -d aba aba; expect_out $'a\na\nb\na'
run "$seen" uniq -c aba; expect_out 2
run "$seen" uniq -d -c aba; expect_out 1
run "$seen" uniq -dc aba; expect_out 1
run "$seen" uniq aba -c; expect_out 2
run "$seen" uniq -- aba; expect_out $'a\nb'
run "$seen" uniq --keyed aba; expect_out $'a\nb'
run "$seen" uniq /dev/null; expect_code 0; expect_out ''

# Each output line ends in a newline, also where the input lacks the last one.
printf 'a\nb' >unended; printf 'c\nb' >unended2
run "$seen" uniq unended unended2; expect_out $'a\nb\nc'
expect; [ "$("$seen" uniq unended | od -An -c | tr -d ' \n')" = 'a\nb\n' ] || wrong "final newline"

# ---- Against the classic, on random lines, in every mode --------------------

awk 'BEGIN { srand(7); for (i = 0; i < 300000; i++) print "line " int(rand() * 90000) }' >random
awk '!s[$0]++' random >wanted
awk 's[$0]++' random >wanted_repeats
for mode in "" "-j2" "-j5" "-n 1M" "-n 1M -p 1e-9 -j2" "-M 1MiB -n 90000" "-p 1e-9 -M 2MB" "-p 1e-9" "-p 1e-9 -j2 --keyed" "--keyed -j3" "--line-buffered"; do
  # shellcheck disable=SC2086
  run "$seen" uniq -q $mode random
  expect_code 0
  expect; cmp -s .out wanted || wrong "mode '$mode' prints other lines than awk"
  # shellcheck disable=SC2086
  run "$seen" uniq -q -d $mode random
  expect; cmp -s .out wanted_repeats || wrong "mode '$mode' -d prints other lines than awk"
done
expect; cat random | "$seen" uniq -j2 | cmp -s - wanted || wrong "from a pipe"
expect; (head -c 1000 random; sleep 0.2; tail -c +1001 random) | "$seen" uniq | cmp -s - wanted || wrong "from a slow pipe"

# ---- Keys -------------------------------------------------------------------

printf 'a\nb\0c\0a\nb\0' >nul
run "$seen" uniq -0 -c nul; expect_out 2
expect; printf 'x\0y\0x\0' | "$seen" uniq -0 | cmp -s - <(printf 'x\0y\0') || wrong "-0"
printf 'Abc\naBC\nabd\n' >cases
run "$seen" uniq -i cases; expect_out $'Abc\nabd'
printf '1\ta\tx\n2\ta\ty\n1\tb\tz\n' >table
run "$seen" uniq -f 2 table; expect_out $'1\ta\tx\n1\tb\tz'; expect_silent
run "$seen" uniq -f 2 -t , table; expect_code 0; expect_err "warning: 3 of 3 lines have no DELIM, and the line is the key"; expect_err "is -t what separates the fields of -f?"
run "$seen" uniq -q -f 2 -t , table; expect_code 0; expect_err "warning: 3 of 3 lines"
run "$seen" uniq -f 1 table; expect_out $'1\ta\tx\n2\ta\ty'
run "$seen" uniq -f 1,2 table; expect_out $'1\ta\tx\n2\ta\ty\n1\tb\tz'
run "$seen" uniq -f 2-3 -c table; expect_out 3
run "$seen" uniq -f -1 -c table; expect_out 2
run "$seen" uniq -f 9 -c table; expect_out 1
printf 'ab,c\na,bc\n' >joined
run "$seen" uniq -f 1,2 -t , -c joined; expect_out 2
printf 'a\na,\n' >missing
run "$seen" uniq -f 1,2 -t , -c missing; expect_out 2
printf 'a::b\nc::b\n' >long
run "$seen" uniq -f 2 -t :: long; expect_out 'a::b'
printf 'K::b\nk::B\n' >both
run "$seen" uniq -i -f 1 -t :: both; expect_out 'K::b'
printf '0aFF\n0Aff\n-\n00\n' >hex
run "$seen" uniq --hex hex; expect_out $'0aFF\n-\n00'
printf '7\n007\n18446744073709551615\n' >numbers
run "$seen" uniq --u64 numbers; expect_out $'7\n18446744073709551615'

# ---- Awkward input ----------------------------------------------------------

printf 'one\0two\nONE\none\0two\n' >binary
expect; "$seen" uniq binary | cmp -s - <(printf 'one\0two\nONE\n') || wrong "NUL inside lines"
printf '\n\n\nx\n\n' >empty_lines
run "$seen" uniq -c empty_lines; expect_out 2
head -c 100000000 /dev/zero | tr '\0' 'x' >huge; echo >>huge; cat huge >>huge2; cat huge >>huge2
run "$seen" uniq -c huge2; expect_out 1
expect; "$seen" uniq -j2 huge2 | cmp -s - huge || wrong "a line of 100 MB"
rm -f huge huge2
for i in $(seq 1 3000); do : >"empty$i"; done
run "$seen" uniq empty[0-9]* aba; expect_code 0; expect_out $'a\nb'
rm -f empty[0-9]*

# The start of a line that just fills what another chunk left free.
{ head -c 524287 /dev/zero | tr '\0' a; echo; head -c 600000 /dev/zero | tr '\0' b; echo; seq 300000; } >tight
for threads in 1 2 4; do
  run "$seen" uniq -c -j $threads tight; expect_out 300002
done

# ---- Mistakes ---------------------------------------------------------------

printf 'zz\n' >fine
run "$seen" uniq fine nowhere aba; expect_failure "nowhere: No such file"
mkdir directory
run "$seen" uniq fine directory; expect_failure "directory: is a directory"
if [ "$(id -u)" -ne 0 ]; then
  : >secret; chmod 0 secret
  run "$seen" uniq fine secret aba; expect_failure "secret: Permission denied"
fi
printf 'ff\nfg\n' >bad_hex
run "$seen" uniq --hex bad_hex
expect_code 2; expect_out ff; expect_err "bad_hex:2: fg: expected hex digits only"
printf '1\n2\n18446744073709551616\n' >bad_number
run "$seen" uniq -q --u64 aba; expect_failure "aba:1: a: expected a decimal number"
run "$seen" uniq --u64 bad_number; expect_code 2; expect_out $'1\n2'; expect_err "bad_number:3:"
# What was read before an error is printed, with any number of threads.
seq 300000 >numbers
for threads in 1 2 4; do
  run "$seen" uniq -j $threads numbers /proc/self/mem
  expect_code 2; expect_err "/proc/self/mem: read: "
  expect; cmp -s .out numbers || wrong "lines before the error, -j $threads"
done
run "$seen" uniq -p 1e-30 aba; expect_failure "below what a 128-bit hash can keep"
for bad in 0 1 2 -0.5 nan inf NaN 1e-400 10%x 1/0 1/ x '' 0x1p-4 100% '1 %' ' 1%'; do
  run "$seen" uniq -n 100 "-p$bad" aba
  if [ -n "$bad" ]; then expect_failure "expected a rate above 0 and below 1"; fi
done
run "$seen" uniq -n 100 -p 1e-300 aba; expect_failure "below what a 128-bit hash can keep"
for bad in 0 -1 nan 1e 1.5 10X 99999999999999999999 1e300 'M' '5 '; do
  run "$seen" uniq -p 1% "-n$bad" aba; expect_failure "expected"
done
run "$seen" uniq -p 1% -n 9223372036854775808 aba; expect_failure "-n 9223372036854775808: takes more than 32 TiB"
run "$seen" uniq -p 1e-6 -n 1G -M 1MB aba; expect_failure "-M 1 MB is too little: -n and -p need 3.93 GB"
run "$seen" uniq -M 10 aba; expect_failure "-M: expected at least 512 bits"
run "$seen" uniq -n aba; expect_failure "-n aba"
run "$seen" uniq aba -n; expect_failure "-n needs a value"
run "$seen" uniq --wrong aba; expect_failure "unknown option --wrong"
run "$seen" uniq -Z aba; expect_failure "unknown option -Z"
run "$seen" uniq --json=yes aba; expect_failure "takes no value"
run "$seen" uniq --hex --u64 aba; expect_failure "exclude each other"
run "$seen" uniq --hex -i aba; expect_failure "leave out -i"
for bad in 0 a 2-1 1,,2 - "," "1,"; do
  run "$seen" uniq -f "$bad" aba; expect_failure "expected fields"
done
run "$seen" uniq -t '' -f 1 aba; expect_failure "-t"
run "$seen" uniq -j 1000 aba; expect_failure "at most 256"

# ---- Output that cannot be written ------------------------------------------

run bash -c "'$seen' uniq random >/dev/full"; expect_code 2; expect_err "No space left"
run bash -c "'$seen' uniq -j2 random >/dev/full"; expect_code 2; expect_err "No space left"
run bash -c "'$seen' uniq -c aba >/dev/full"; expect_code 2; expect_err "No space left"
run bash -c "'$seen' uniq aba >&-"; expect_code 2; expect_err "stdout is closed"
run bash -c "'$seen' uniq aba <&-"; expect_code 0; expect_out $'a\nb'
run bash -c "'$seen' uniq <&-"; expect_code 2; expect_err "stdin"
run bash -c "set -o pipefail; '$seen' uniq random | head -n 1; echo \${PIPESTATUS[0]}"
expect_silent; expect; [[ $out == *$'\n2' ]] || wrong "a closed pipe ends with 2, quietly"
run timeout 10 bash -c "yes | '$seen' uniq -d | head -n 3"
expect_out $'y\ny\ny'; expect_silent

# ---- At once, when nothing more is ready ------------------------------------

mkfifo slow
"$seen" uniq --line-buffered <slow >fast &
exec 3>slow
printf 'first\nfirst\nsec' >&3
wait_for test -s fast
expect; [ "$(cat fast)" = first ] || wrong "a line waits although nothing more is ready"
printf 'ond\n' >&3
two_lines() { [ "$(wc -l <fast)" -eq 2 ]; }
wait_for two_lines
expect; [ "$(cat fast)" = $'first\nsecond' ] || wrong "a line in two pieces"
exec 3>&-
wait

# SIGUSR1: one status line, even while waiting for input.
for threads in 1 4; do
begin status fast
"$seen" uniq -j $threads <slow >fast 2>status &
pid=$!
exec 3>slow
printf 'x\ny\nx\n' >&3
wait_for test -s fast
kill -USR1 "$pid"
wait_for test -s status
expect; grep -q '3 lines, 1 repeated' status || wrong "SIGUSR1 status: $(cat status)"
exec 3>&-
wait
done

# ---- Notes and numbers ------------------------------------------------------

run "$seen" uniq -p 1e-6 -n 14M aba; expect_err "of 14,000,000 distinct lines expect to lose 1."
run "$seen" uniq -q -p 1e-6 -n 14M aba; expect_silent
run "$seen" uniq -p 1% -n 1000 random; expect_err "distinct lines were kept, 1,000 were planned"
# -p alone grows: 3 million distinct lines are three times what it begins with.
run "$seen" uniq -p 1% aba; expect_code 0; expect_out $'a\nb'
expect_err "filter that grows"; expect_err "at most 1% of the distinct ones"
run "$seen" uniq -q -p 1% aba; expect_silent
seq 3000000 >three
run "$seen" uniq -c -p 1e-4 --json three
expect; [[ $out == *'"kind": "scalable"'*'"capacity": 0'* ]] || wrong "kind and capacity"
expect; awk '/"unique"/ { u = $2 + 0 } /"expected_lost"/ { e = $2 + 0 }
  END { lost = 3e6 - u; exit !(lost < 300 && e < 300 && lost > e / 2 && lost < 2 * e) }' .out ||
  wrong "lines lost of 3 million, and as many expected"
run "$seen" uniq -c -p 1e-4 --stats three; expect_err "3,000,000 lines"
expect; [[ $err != *planned* && $err != *unknown* ]] || wrong "a filter that grows is never overfull"
rm -f three
# An overfull filter does not pretend to know what it lost.
seq 200000 >distinct
run "$seen" uniq -c -p 1% -n 1000 distinct
expect_err "1,000 were planned"; expect_err "new lines were lost; use a larger -n"
run "$seen" uniq -c -p 1% -n 1000 --json distinct
expect; grep -q '"expected_lost": null' .out || wrong "expected_lost of an overfull filter"
run "$seen" uniq --stats aba; expect_err "3 lines, 2 unique, 1 repeat"
run "$seen" uniq -c --json aba; expect_out "$(cat .out)"; expect
grep -q '"unique": 2' .out || wrong "json"
run "$seen" uniq --json -p 1% -n 100 aba; expect_err '"repeats": 1'; expect_out $'a\nb'
expect; [[ $err == '{'*'}' ]] || wrong "with --json stderr is JSON and nothing else"

finish
