#!/usr/bin/env bash
# test_help.sh - help: one screen, every verb with three examples that run, and
# what to do next where something was mistyped.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

# ---- The overview ----------------------------------------------------------

run "$seen" --help; expect_code 0; expect_silent
overview=$out
expect; [ "$(wc -l <"$work/.out")" -le 23 ] || wrong "does not fit 24 lines"
expect; [ "$(wc -L <"$work/.out")" -le 80 ] || wrong "does not fit 80 columns"
run "$seen" help; expect_code 0; expect_out "$overview"
run "$seen"; expect_code 2; expect_out "$overview"
mapfile -t verbs < <(sed -n 's/^\([a-z]*  *\| \{10\}\)\([a-z]\{3,8\}\)  .*/\2/p' <<<"$overview")
expect; [ "${#verbs[@]}" -ge 19 ] || wrong "found ${#verbs[@]} verbs"

# ---- Each verb: the same by three ways, 80 columns, examples ----------------

examples() { # VERB: its commands, one a line
  "$seen" "$1" --help | sed -n '/^examples:/,$ s/^  \([^ ]\)/\1/p'
}
for verb in "${verbs[@]}"; do
  run "$seen" "$verb" --help; expect_code 0; expect_silent
  help=$out
  expect; [ "$(wc -L <"$work/.out")" -le 80 ] || wrong "does not fit 80 columns"
  run "$seen" help "$verb"; expect_code 0; expect_out "$help"
  run "$seen" "$verb" -h; expect_code 0; expect_out "$help"
  expect; [ "$(examples "$verb" | wc -l)" -ge 3 ] || wrong "fewer than three examples"
done

# ---- Slips -----------------------------------------------------------------

run "$seen" buidl; expect_failure "did you mean build?"
run "$seen" check-; expect_failure "did you mean check?"
run "$seen" uni; expect_failure "did you mean uniq?"
run "$seen" help pln; expect_failure "did you mean plan?"
run "$seen" xyzzy; expect_failure "xyzzy: no such verb; \`seen --help\` lists them"
run "$seen" ''; expect_failure "no such verb"
run "$seen" "$(printf '%0500d' 0)"; expect_failure "no such verb"
run "$seen" build --knid blocked; expect_failure "did you mean --kind?"
run "$seen" build --bits-per-kye=3; expect_failure "did you mean --bits-per-key?"
run "$seen" uniq --line; expect_failure "did you mean --line-buffered?"
run "$seen" uniq --zzzzzz; expect_failure "unknown option --zzzzzz; \`seen uniq --help\` lists them"
run "$seen" plan -kind bloom; expect_failure "did you mean --kind?"
run "$seen" uniq -Z; expect_failure "unknown option -Z; \`seen uniq --help\` lists them"
run "$seen" help uniq extra; expect_failure "expected one VERB"
run "$seen" help --completions tcsh; expect_failure "expected bash, zsh or fish"
run "$seen" help --man --completions bash; expect_failure "leave out VERB and --man"

# ---- The examples run ------------------------------------------------------
#
# In a directory with the files they name. Programs of the user's own are small
# scripts that print keys, or do here what they would do elsewhere.

mkdir bin
ln -s "$seen" bin/seen
program() { printf '#!/bin/sh\n%s\n' "$2" >"bin/$1"; chmod +x "bin/$1"; }
program fetch 'cat; seq 100'
program producer 'seq 100'
program mysql 'seq 100'
program rank 'seq -f post-%.0f 50'
program consume 'printf "alice\tpost-1\nbob\tpost-2\n"'
program alert 'exit 1'
program tail 'shift; exec cat "$@"' # -f would never end
program ssh 'shift; exec sh -c "$*"'
export PATH=$work/bin:$PATH

furnish() { # the files that examples name
  mkdir kit
  cd kit || exit 2
  seq 1000 | tee access.log urls.txt keys.txt banned.txt passwords.txt |
    sed 's/.*/x,&,z/' >events.csv
  seq 500 1500 >candidates.txt
  gzip -c urls.txt >urls-1.gz
  cp urls-1.gz urls-2.gz
  cp urls.txt new-1.txt
  for name in urls breached big monday tuesday all today filters/a; do
    mkdir -p filters
    "$seen" build -q -o $name.seen urls.txt
  done
  "$seen" build -q --secret-file key -o a.seen urls.txt
  "$seen" build -q --secret-file key -o b.seen urls.txt
  "$seen" build -q --kind cuckoo -o sessions.seen urls.txt
  "$seen" build -q --kind bitmap -o ids.bitmap <(seq 5000)
  "$seen" build -q --kind cuckoo --hex -n 2 -o tokens.seen <(printf '00\nff\n')
  seq 10 >ended.txt
  printf 'ff\n' >revoked.txt
  "$seen" build -q --dialect leveldb --bits-per-key 10 -o block keys.txt
  "$seen" build -q --dialect guava -n 1000 -o unknown.bin keys.txt
  "$seen" build -q --dialect exposure-list -n 1000 -p 0.1% -o shown.list keys.txt
  "$seen" convert -q shown.list --to native -n 1000 -p 0.1% -o shown.seen
  "$seen" build -q --dialect bits-and-blooms-json -n 1000 -o filter.json keys.txt
  printf 'alice\tpost-17\nbob\tpost-1\ncarol\tpost-2\n' | tee shown.tsv candidates.tsv |
    "$seen" mark -q feed
  "$seen" mark -q old-feed alice post-2
  "$seen" mark -q hidden alice post-3
  printf 'bob\ncarol\n' >leavers.txt
  cd "$work" || exit 2
}

furnish
for verb in "${verbs[@]}"; do
  [ "$verb" = server ] && continue # test_server.sh
  cp -r kit "at-$verb"
  cd "at-$verb" || exit 2
  case $verb in # these make their own
  uniq) rm shown.seen ;;
  add) rm urls.seen ;;
  esac
  while read -r example; do
    if [[ $example == *jq* ]] && ! command -v jq >/dev/null; then
      echo "skipped, because there is no jq: $example"
      continue
    fi
    run bash -c "set -o pipefail; $example"
    if [[ $example == *"|| alert" ]]; then expect_silent; fi
    expect_code 0
    expect; [[ $err != *expected* ]] || wrong "an example should not complain"
  done < <(examples "$verb")
  cd "$work" || exit 2
done

finish
