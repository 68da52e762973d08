#!/usr/bin/env bash
# test_overwrite.sh - no output takes away its own input, or a file that is not a filter.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

seq 1 1000 >keys; cp keys keys.copy
ln -s keys linked; ln keys hard; mkdir d; ln -s ../keys d/far
"$seen" build -q -n 1000 -o f.seen keys

# intact FILE COPY: nothing was written, and nothing lies beside it.
intact() {
  expect; cmp -s "$1" "$2" || wrong "$1 has changed"
  expect_no_file "$1.seen-new"
}

# ---- The output is the input, by whatever name ----------------------------
for name in keys ./keys linked hard d/far; do
  for input in keys linked hard; do
    run "$seen" build -n 1000 -o "$name" "$input"; expect_failure "$name: is the input"
    intact keys keys.copy
    run "$seen" build --force -n 1000 -o "$name" "$input"; expect_failure "$name: is the input"
    intact keys keys.copy
  done
  input=keys run "$seen" build -n 1000 -o "$name"; expect_failure "$name: is the input"
  input=keys run "$seen" build -n 1000 -o "$name" f.seen -; expect_failure "$name: is the input"
  intact keys keys.copy
done
run "$seen" convert keys --dialect gozero --bits 1000 --to native -o hard; expect_failure "hard: is the input"
intact keys keys.copy

# Redirections: the shell has opened the file, but lines already there stay.
for verb in uniq 'check f.seen'; do
  # shellcheck disable=SC2086
  "$seen" $verb keys >>keys 2>.err; code=$?; out='' err=$(cat .err) last="seen $verb keys >> keys"
  expect_code 2; expect_err "keys: input and output are the same file; nothing was read or written: write to another file"; intact keys keys.copy
  # shellcheck disable=SC2086,SC2094
  "$seen" $verb <keys >>linked 2>.err; code=$?; err=$(cat .err)
  expect_code 2; expect_err "stdin: input and output are the same file"; intact keys keys.copy
done
cp keys gone
# shellcheck disable=SC2094 # that is what it is about
"$seen" uniq gone >gone 2>.err; code=$? err=$(cat .err); expect_code 2; expect_err "nothing was read or written, but > has emptied the file before"
# shellcheck disable=SC2094 # that is what it is about
"$seen" build -n 10 -o - keys >>keys 2>.err; code=$?; expect_code 2; intact keys keys.copy
run "$seen" uniq keys; expect_code 0 # to another file

# A filter fed with its own bytes.
cp f.seen f.copy
for verb in "add f.seen f.seen" "remove f.seen f.seen" "uniq --state f.seen f.seen"; do
  # shellcheck disable=SC2086
  run "$seen" $verb; expect_failure "f.seen: is the input"; intact f.seen f.copy
done
input=f.seen run "$seen" add f.seen; expect_failure "f.seen: is the input"; intact f.seen f.copy

# merge over one of its inputs is a way to add, and no accident: the result holds all of it.
seq 2001 2500 >extra; "$seen" build -q -n 1000 -o g.seen extra
run "$seen" merge -q -o f.seen f.seen g.seen; expect_code 0
run "$seen" check -qv f.seen keys extra; expect_code 1
ln f.seen f.hard
run "$seen" merge -q -o f.hard f.seen g.seen; expect_code 0

# The secret and the filter.
run "$seen" build -q -n 10 --secret-file s -o s extra; expect_failure "s: -o and --secret-file need a file each"
expect_no_file s

# ---- The output is something else -----------------------------------------
printf 'my notes\n' >notes; cp notes notes.copy
run "$seen" build -n 1000 -o notes keys
expect_failure "notes: exists, and is not a filter that can be recognised; --force replaces it"
intact notes notes.copy
run "$seen" build -n 1000 --dialect guava -o notes keys; expect_failure "notes: exists"; intact notes notes.copy
run "$seen" merge -o notes f.seen g.seen; expect_failure "notes: exists"; intact notes notes.copy
"$seen" build -q -n 1000 --dialect guava -o guava keys
run "$seen" convert guava --to native -o notes; expect_failure "notes: exists"; intact notes notes.copy
"$seen" convert -q guava --to native -o boxed
run "$seen" convert boxed --to guava -o notes; expect_failure "notes: exists"; intact notes notes.copy
gzip -c keys >keys.gz; cp keys.gz keys.gz.copy
run "$seen" build -n 1000 -o keys.gz extra; expect_failure "keys.gz: exists"; intact keys.gz keys.gz.copy
run "$seen" plan -n 1000 -p 1% --plot notes; expect_failure "notes: exists, and is not an SVG picture"; intact notes notes.copy
run "$seen" bench -n 1000 --plot notes; expect_failure "notes: exists, and is not an SVG picture"; intact notes notes.copy
run "$seen" plan -q -n 1000 -p 1% --plot plot.svg; expect_code 0
run "$seen" plan -q -n 1000 -p 1% --plot plot.svg; expect_code 0 # again
run "$seen" plan -q -n 1000 -p 1% --plot notes --force; expect_code 0
cp notes.copy notes
run "$seen" build -q -n 1000 --force -o notes keys; expect_code 0
run "$seen" check -qv notes keys; expect_code 1

# Filters are replaced, ours, damaged or not, and those of other systems; a note says so.
run "$seen" build -q -n 1000 -o f.seen keys; expect_code 0; expect_silent
run "$seen" build -n 1000 -o f.seen keys; expect_code 0; expect_err "f.seen: replaced a filter of kind blocked with about"
run "$seen" build --json -n 1000 -o f.seen keys; expect_json replaced true; expect_silent
run "$seen" build --json -n 1000 -o not-there keys; expect_json replaced false
run "$seen" build -n 1000 -o - keys; expect; [[ $err != *replaced* ]] || wrong "nothing was there"
flip f.seen 200; flip f.seen 712
run "$seen" build -n 1000 -o f.seen keys; expect_code 0; expect_err "f.seen: replaced a filter that was damaged"
run "$seen" merge -o f.seen f.seen g.seen; expect; [[ $err != *replaced* ]] || wrong "all that was there is still in it"
run "$seen" merge -o not-there f.seen g.seen; expect_err "not-there: replaced a filter of kind blocked"
cp guava twin; run "$seen" convert guava --to native -o twin; expect_err "twin: replaced a guava filter"
cp notes.copy text; run "$seen" build -n 1000 --force -o text keys; expect_err "text: replaced a file that was no filter"
for len in 8 100 300; do
  "$seen" build -q -n 1000 -o - keys | head -c $len >cut.seen
  run "$seen" build -q -n 1000 -o cut.seen keys; expect_code 0
done
for dialect in guava dcso redisbloom; do
  run "$seen" build -q -n 1000 --dialect $dialect -o other keys --force; expect_code 0
  run "$seen" build -q -n 1000 --dialect $dialect -o other keys; expect_code 0
done
# An empty file has nothing to lose; a device is not replaced.
: >empty
run "$seen" build -q -n 1000 -o empty keys; expect_code 0
run "$seen" build -q -n 1000 -o /dev/null keys; expect_code 0

# ---- Text where a filter to change is expected ----------------------------
for verb in 'add notes.copy' 'remove notes.copy' 'uniq --state notes.copy'; do
  cp notes.copy text
  # shellcheck disable=SC2086
  input=keys run "$seen" ${verb/notes.copy/text}; expect_failure "text: "
  intact text notes.copy
done
finish
