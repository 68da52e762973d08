#!/usr/bin/env bash
# test_wrong_thing.sh - a filter where a store belongs, a store where a filter belongs, a name
# with a slip in it: errors and warnings say what is there.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

seq 1 10 >lines
"$seen" build -q --kind bloom -o filter lines
"$seen" mark -q feed alice post-1
mkdir empty
stores=('fresh @ u lines' 'take @ u -n 1 lines' 'mark @ u i' 'forget @ u' 'sweep @' 'backup @ copy')
filters=('check @ lines' 'add @ lines' 'remove @ lines' 'uniq --state @ lines' 'merge -o out @ @' 'convert @ --to native -o out')
# each NAME TEXT VERB...: with the name for "@", fails so.
each() {
  local name=$1 text=$2 verb
  shift 2
  for verb; do
    # shellcheck disable=SC2086
    run "$seen" ${verb//@/$name}; expect_failure "$name: $text"
  done
}

each filter 'is a filter file (of kind bloom), not a store of users: seen check asks it' "${stores[@]}"
each lmdb:filter 'is a filter file (of kind bloom), not a store of users: seen check asks it' "${stores[@]}"
each lines 'is a regular file, not a store of users' "${stores[@]}"
each /dev/null 'is no directory, not a store of users' "${stores[@]}"
each empty 'is a directory without a store in it; seen mark and seen take make one' \
  'fresh @ u lines' 'forget @ u' 'sweep @' 'backup @ copy'
each nothing 'no such store; seen mark and seen take make one' 'fresh @ u lines' 'forget @ u' 'sweep @' 'backup @ copy'
each feed 'is a store of users, not a filter file: seen fresh asks it' "${filters[@]}"
each empty 'is a directory: expected a filter file' "${filters[@]}"
expect_no_file copy; expect_no_file out

# A store that may not be read is there all the same.
if [ "$(id -u)" -ne 0 ]; then
  chmod 0 feed
  run "$seen" fresh feed alice lines; expect_failure 'feed: look at data.mdb: Permission denied'
  run "$seen" mark feed alice x; expect_failure 'Permission denied'
  chmod 700 feed
elif chmod 755 . && setpriv --reuid=65534 --clear-groups test -x . 2>/dev/null && setpriv --reuid=65534 --clear-groups test -x "$seen"; then
  run setpriv --reuid=65534 --clear-groups "$seen" fresh feed alice lines
  expect_failure 'feed: look at data.mdb: Permission denied'
else
  echo "not tried: a store of somebody else (the program cannot be run as another user)"
fi

# ---- Slips ------------------------------------------------------------------

run "$seen" fresh fed alice lines; expect_failure 'fed: no such store; there is one called feed'
run "$seen" fresh ./fed/ alice lines; expect_failure './fed/: no such store; there is one called feed'
mkdir post posts # directories, and no stores
run "$seen" fresh postt alice lines; expect_failure 'postt: no such store; seen mark and seen take make one'
run "$seen" mark --no-create fed alice x; expect_failure 'fed: no such store; there is one called feed'; expect_no_file fed
run "$seen" take --no-create other alice -n 1 lines; expect_failure 'other: no such store'; expect_no_file other
run "$seen" mark --no-create feed alice x; expect_code 0
run "$seen" add --no-create nofilter -n 10 -p 1% lines; expect_failure 'nofilter: no such file, and --no-create says to make none'
expect_no_file nofilter
run "$seen" mark fed alice x; expect_code 0
expect_err 'fed: is a new store; there is one called feed: mistyped? (--no-create makes none)'
run "$seen" mark -q fedd alice x; expect_code 0; expect_silent
for name in feed2024-10-01 feed2024-10-02 feet-7 s2 st; do # alike on purpose, or short
  run "$seen" mark $name alice x; expect_code 0; expect; [[ $err != *mistyped* ]] || wrong "$name is no slip"
done
run "$seen" mark --no-create nothing-like-that alice x; expect_failure 'nothing-like-that: no such store'
expect; [[ $err != *"make one"* ]] || wrong "it was told to make none"
"$seen" mark -q lost alice x; cp -r lost lost2; : >lost2/seen.journal-0000000000000001; rm lost2/data.mdb
run "$seen" fresh lost2 alice lines; expect_failure 'lost2: data.mdb is missing, and its journal is there'
run "$seen" mark elsewhere alice x; expect_code 0; expect; [[ $err != *mistyped* ]] || wrong "nothing has a name like that"
printf 'u\ti\n' >events.tsv
run "$seen" mark new events.tsv; expect_no_file new
expect_failure 'events.tsv is taken for a user, though there is such a file, and ITEM is missing: events come from stdin (seen mark new < events.tsv)'
run "$seen" mark new nobody; expect_failure 'ITEM is missing'

# ---- Pipes ------------------------------------------------------------------

# Where reading is enough a pipe is as good as stdin; where it is not, that is said at
# once, whether or not there is somebody who writes to it.
seq 1 1000 >keys; "$seen" build -q -n 1000 -o whole keys; "$seen" build -q --dialect leveldb --bits-per-key 10 -o block keys
for name in one two; do "$seen" build -q --secret-file secret -n 1000 -o $name keys; done
mkfifo pipe
ln -s "$seen" program
piped() { run timeout 60 bash -c "$1"; }
piped './program check -c <(cat whole) keys'; expect_out 1000
piped './program check -c <(cat whole) <keys'; expect_out 1000
piped 'cat whole | ./program check -c /dev/stdin keys'; expect_out 1000
piped './program check -c --dialect leveldb <(cat block) keys'; expect_out 1000
piped 'cat whole >pipe & ./program check -c pipe keys'; expect_out 1000
piped '(sleep 2; cat whole >pipe) & ./program check -c pipe keys'; expect_out 1000; expect_err "pipe: waiting for a program to write to this pipe"
piped './program info --json <(cat whole)'; expect_json items 1000
piped './program verify <(cat whole) /dev/stdin < <(cat whole)'; expect_code 0; expect_silent; expect; [[ $out == *"stdin: good" ]] || wrong "verify of pipes"
piped './program verify <(head -c 1000 whole)'; expect_code 2
piped './program merge -q -o both <(cat whole) <(cat whole) && ./program check -c both keys'; expect_out 1000
piped './program convert -q <(cat block) --dialect leveldb --to native -o native && ./program check -c native keys'; expect_out 1000
piped './program merge -q --secret-file <(cat secret) -o both one two'; expect_code 0; expect_silent
piped ': >pipe & ./program info pipe'; expect_failure "pipe: is empty: expected a filter"
for same in '/dev/stdin' '- /dev/stdin' '/dev/stdin -' '/dev/fd/0 keys -'; do
  piped "cat whole | ./program check $same"; expect_failure "stdin is the filter: name files with the keys"
done
piped './program check /dev/stdin <whole'; expect_failure "stdin is the filter: name files with the keys"
run timeout 60 "$seen" check pipe pipe; expect_failure "pipe is the filter: name files with the keys"
for verb in add 'add -n 10' remove 'uniq --state' 'uniq -c --state'; do
  # shellcheck disable=SC2086
  run timeout 60 "$seen" $verb pipe keys; expect_failure "pipe: is a pipe, which can only be read: expected a filter file"
  piped "./program $verb <(cat whole) keys"; expect_failure ": is a pipe, which can only be read: expected a filter file"
  piped "cat whole | ./program $verb /dev/stdin keys"; expect_failure "stdin can only be read: expected a filter file"
done

finish
