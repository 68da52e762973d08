#!/usr/bin/env bash
# test_check.sh - seen check: which lines are in a filter?
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

printf 'a\nb\nc\n' >abc
printf 'c\nx\na\ny' >asked
"$seen" build -q -p 1e-9 -o f abc

# ---- Lines, in their order, unchanged ---------------------------------------

run "$seen" check f asked; expect_code 0; expect_out $'c\na'; expect_silent
run "$seen" check -v f asked; expect_code 0; expect_out $'x\ny'
run "$seen" check -c f asked; expect_code 0; expect_out 2
run "$seen" check -vc f asked; expect_out 2
run "$seen" check f -c asked; expect_out 2
run "$seen" check -q f asked; expect_code 0; expect_out ''
run "$seen" check -qv f asked; expect_code 0; expect_out ''
run "$seen" check -- f asked; expect_out $'c\na'
input=asked; run "$seen" check f; expect_out $'c\na'; run "$seen" check f -; expect_out $'c\na'; unset input
run "$seen" check f asked asked; expect_out $'c\na\nc\na'
run "$seen" check f abc; expect_code 0
printf 'x\ny\n' >xy
run "$seen" check f xy; expect_code 1; expect_out ''; expect_silent
run "$seen" check -v f abc; expect_code 1; expect_out ''
run "$seen" check -c f xy; expect_code 1; expect_out 0
run "$seen" check -q f xy; expect_code 1
run "$seen" check -qv f abc; expect_code 1
run "$seen" check f /dev/null; expect_code 1
run "$seen" check -c --json f asked; expect_silent; expect_json lines 4; expect_json maybe 2; expect_json never 2
run "$seen" check --json f asked; expect_code 0; expect_silent; expect_json maybe 2
run "$seen" check -q --json f asked; expect_code 0; expect_out ''; expect_json lines 4 err; expect_json maybe 2 err
run "$seen" check -q -c --json f asked; expect_code 0; expect_silent; expect_json maybe 2
# -q knows after the first.
run timeout 10 bash -c "yes a | '$seen' check -q f"; expect_code 0
printf '\n\n' >blank; "$seen" build -qo blanks blank; run "$seen" check -c blanks blank; expect_out 2
printf 'A\nB\n' >upper; run "$seen" check -i f upper; expect_out $'A\nB'
printf 'a\0x\0' >nul; expect; "$seen" check -0 f nul | cmp -s - <(printf 'a\0') || wrong "-0"

# ---- Many lines, any number of threads --------------------------------------

seq 1 300000 >many
seq 1 2 300000 >odd
for kind in bloom blocked cuckoo ribbon scalable set bitmap sorted; do
  p='-p 1e-9'; case $kind in set | bitmap) p='' ;; cuckoo | ribbon | sorted) p='-p 1e-8' ;; esac
  # shellcheck disable=SC2086
  "$seen" build -q --kind $kind $p -o $kind odd
  for threads in 1 2 5; do
    run "$seen" check -j $threads $kind many
    expect_code 0; expect; cmp -s .out odd || wrong "$kind with $threads threads"
    run "$seen" check -v -j $threads $kind many
    expect; cmp -s .out <(seq 2 2 300000) || wrong "$kind -v with $threads threads"
  done
done
expect; cat many | "$seen" check -j2 blocked | cmp -s - odd || wrong "from a pipe"

# ---- A filter from stdin ----------------------------------------------------

expect; [ "$("$seen" build -q -n 10 -o - abc | "$seen" check - asked)" = $'c\na' ] || wrong "from a pipe"
run bash -c "'$seen' check - asked <f"; expect_out $'c\na'
run bash -c "'$seen' check - <f"; expect_failure "stdin is the filter: name files with the keys"
run bash -c "'$seen' check - asked - <f"; expect_failure "stdin is the filter"
run "$seen" check - asked; expect_failure "stdin: is empty: expected a filter"
run bash -c "'$seen' check - asked <asked"; expect_failure "stdin: not a filter of seen"
run bash -c "head -c 300 f | '$seen' check - asked"; expect_failure "stdin: cut off: 300 bytes, expected"
cp f hurt; flip hurt $(($(stat -c %s hurt) - 10))
run bash -c "'$seen' check - asked <hurt"; expect_failure "stdin: damaged in the 64 KiB from offset"
"$seen" build -q --secret-file key -o apart abc
run bash -c "'$seen' check - asked <apart"; expect_failure "stdin: its secret is kept apart"
run bash -c "'$seen' check --secret-file key - asked <apart"; expect_out $'c\na'

# ---- Through a link; at once ------------------------------------------------

ln -s f link; run "$seen" check link asked; expect_out $'c\na'
mkfifo slow
"$seen" check --line-buffered f <slow >fast &
exec 3>slow
printf 'x\na\n' >&3
wait_for test -s fast
expect; [ "$(cat fast)" = a ] || wrong "a line waits although nothing more is ready"
exec 3>&-; wait

# ---- Mistakes ---------------------------------------------------------------

run "$seen" check; expect_failure "TARGET is missing"
run "$seen" check nowhere asked; expect_failure "nowhere: no such file"
run "$seen" check f nowhere; expect_failure "nowhere: No such file"
run "$seen" check . asked; expect_failure ".: is a directory: expected a filter file"
run "$seen" check asked abc; expect_failure "asked:"
run "$seen" check redis+nosuch://localhost/x?bits=5 abc; expect_failure "no filter on a server has such a URL"
run "$seen" check -j 1000 f abc; expect_failure "at most 256"
run "$seen" check --hex f abc; expect_code 2; expect_err "abc:1"
: >hollow; run "$seen" check hollow abc; expect_failure "hollow: 0 bytes are too few"
# The first byte of the magic, the version, each field: never an answer.
for at in 0 8 10 12 24 32 40 48 64 88 96 130 250; do
  cp f hurt; flip hurt "$at"; flip hurt $((at + 512))
  run "$seen" check hurt abc; expect_code 2; expect_out ''
done
# One damaged header is what the other is there for.
cp f hurt; flip hurt 30; run "$seen" check hurt asked; expect_out $'c\na'
head -c $(($(stat -c %s f) - 1)) f >short; run "$seen" check short abc; expect_failure "short: cut off: $(($(stat -c %s f) - 1)) bytes, expected $(stat -c %s f)"

# ---- Damaged pages ----------------------------------------------------------

# Without a look at the checksums some of these would be a wrong "never".
for kind in bloom blocked cuckoo fuse scalable set bitmap sorted; do
  size=$(stat -c %s $kind)
  for at in $((size / 2)) $((size - 1)); do
    cp $kind hurt; flip hurt $at; cp hurt before
    run "$seen" check hurt odd; expect_failure "does not match its checksum"; expect_err "hurt: page "; expect_err "seen check --no-verify asks it as it is"
    run "$seen" check -q hurt odd; expect_code 2; expect_err "hurt: page "
    run "$seen" info hurt; expect_failure "hurt: page "
    run "$seen" add -q hurt abc; expect_code 2; expect_err "hurt: "
    run "$seen" merge -o both hurt $kind; expect_code 2; expect_no_file both
    run "$seen" check -c --no-verify hurt odd; expect_code 0; expect_silent; expect; [ "$out" -gt 100000 ] || wrong "no answers"
    run "$seen" info --no-verify hurt; expect_code 0; expect_silent
    expect; cmp -s hurt before || wrong "a damaged file was changed"
    expect; [ -z "$(find . -name 'hurt.*')" ] || wrong "something is left beside it"
  done
done
run "$seen" check --no-verify redis://localhost/ abc; expect_failure "--no-verify is for filter files"
# A change gives a page a new checksum: not to one that is damaged.
"$seen" build -q --kind blocked -n 3M -o hurt odd; flip hurt $(($(stat -c %s hurt) / 2))
run "$seen" add hurt many; expect_failure "hurt: page "
run "$seen" add -q --no-verify hurt many; expect_code 2; expect_err "the file is damaged where this key belongs"
run "$seen" add -q --no-verify hurt asked; expect_code 0; run "$seen" verify hurt; expect_code 2; expect; [[ $out == "hurt: BAD: page "* ]] || wrong "a change has hidden damage"
run "$seen" check --no-verify hurt asked; expect_out "$(cat asked)"

run bash -c "'$seen' check f asked >/dev/full"; expect_code 2; expect_err "No space left"
run bash -c "'$seen' check -c f asked >/dev/full"; expect_code 2; expect_err "No space left"
run bash -c "'$seen' check blocked many | head -n 1; exit \${PIPESTATUS[0]}"; expect_code 2; expect_silent
run "$seen" check --help; expect_code 0

# ---- Files that nobody may change -------------------------------------------

mkdir closed; cp f closed/f; chmod 444 closed/f; chmod 555 closed
run "$seen" check closed/f asked; expect_out $'c\na'
chmod 755 closed


# ---- Every line and its answer ----------------------------------------------

printf '%s\n' yes 'a "quoted\" key' $'tab\there' $'gr\xc3\xbcn' $'raw\xff\xfe' '' | "$seen" build -qo all.seen -n 100 -p 1e-9
printf '%s\n' yes no 'a "quoted\" key' $'tab\there' $'gr\xc3\xbcn' $'raw\xff\xfe' '' >every
cat >objects.py <<'EOF'
import json, sys
*lines, totals = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert all(set(o) <= {"line", "line_hex", "verdict"} and len(o) == 2 for o in lines), lines
keys = [bytes.fromhex(o["line_hex"]) if "line_hex" in o else o["line"].encode() for o in lines]
assert keys == open("every", "rb").read().split(b"\n")[:-1], keys
assert "line_hex" in lines[5] and [o["verdict"] for o in lines] == ["maybe", "never"] + 5 * ["maybe"], lines
assert (totals["lines"], totals["maybe"], totals["never"]) == (7, 6, 1) and "verdict" not in totals, totals
EOF
for how in -j1 -j3 --line-buffered; do
  run "$seen" check $how --verdict all.seen every; expect_code 0; expect_silent
  expect; cmp -s .out <(paste <(printf '%s\n' maybe never maybe maybe maybe maybe maybe) every) || wrong "every line with its verdict"
  run "$seen" check $how --json all.seen every; expect_code 0; expect_silent
  expect; python3 objects.py .out || wrong "an object for every line, and totals"
done
tr '\n' '\0' <every >nul
"$seen" check -0 --verdict all.seen nul >.nul; expect; [ "$(tr -cd '\0' <.nul | wc -c)" -eq 7 ] || wrong "lines end as they did"
# UTF-8 that is none: too long a form, half of a pair, above U+10FFFF, cut off. The last is.
printf '\xc0\xaf\n\xed\xa0\x80\n\xf4\x90\x80\x80\n\xe2\x82\n\xf0\x9f\x98\x80\n' >odd
run "$seen" check --json all.seen odd; expect; [ "$(grep -c line_hex .out)" -eq 4 ] || wrong "four lines in hex"
# The exit code is about what was printed: all of it.
run "$seen" check --verdict all.seen /dev/null; expect_code 1; expect_out ''
run "$seen" check --json all.seen /dev/null; expect_code 1; expect_json lines 0
echo no >none; run "$seen" check --verdict all.seen none; expect_code 0; expect_out $'never\tno'
for with in '-v --verdict' '-v --json' '-c --verdict' '-q --verdict' '--json --verdict'; do
  # shellcheck disable=SC2086
  run "$seen" check $with all.seen every; expect_failure "every line"
done
finish
