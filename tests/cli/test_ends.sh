#!/usr/bin/env bash
# test_ends.sh - whoever changes a store or a file ends badly: nobody reads its
# output any more, a signal comes, it is killed. Readers miss nothing of what it
# did.
#
#   test_ends.sh SEEN
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

no_journal() { ! compgen -G "$1" >/dev/null; }
expect_closed() { expect; no_journal "$1.journal-*" && no_journal "$1/seen.journal-*" || wrong "$1 was not closed"; }
expect_journal() { expect; no_journal "$1/seen.journal-*" && wrong "$1 has no journal"; }

seq -f 'post %.0f' 1 100000 >long
seq -f 'user %.0f' 1 100000 | sed 's/$/\tpost/' >events

# ---- Nobody reads on --------------------------------------------------------

for n in 1 3000; do
  run bash -c "'$seen' take -q feed$n alice -n $n long | :"
  run bash -c "'$seen' take -q feed$n alice -n $n long | head -1 >first"
  expect_closed "feed$n"
  run "$seen" fresh "feed$n" alice long; expect_code 0
  expect; ! grep -qxFf first .out || wrong "what was shown is offered again"
done
run bash -c "'$seen' take -q feed alice -n 3000 long >/dev/full"; expect_code 2; expect_err "No space left"; expect_closed feed
run "$seen" fresh feed alice -n 1 long; expect_out 'post 3001'

run bash -c "'$seen' mark -q --ack --batch 10 marks <events | head -1"; expect_out 10; expect_closed marks
run bash -c "head -10 events | '$seen' fresh marks"; expect_out ''

for threads in 1 3; do
  run bash -c "'$seen' uniq --state state$threads -j $threads long | head -1; exit \${PIPESTATUS[0]}"
  expect_code 2; expect_out 'post 1'; expect_closed state$threads
  run bash -c "head -1 long | '$seen' uniq --state state$threads"; expect_out ''
done
run bash -c "'$seen' add -q -n 1e6 -p 1% --ack filter long | head -1"; expect_closed filter

# ---- Signals ----------------------------------------------------------------

mkfifo slow
for signal in INT TERM HUP; do
  for verb in take mark; do
    rm -rf s
    begin out
    case $verb in
    take) arguments=(take -q s -n 1) ;;
    mark) arguments=(mark -q s --ack) ;;
    esac
    # A shell has background jobs ignore SIGINT, and so would we.
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$seen" "${arguments[@]}" <slow >out &
    pid=$!
    exec 3>slow
    printf 'ann\tpost\nbob\tpost\n' >&3
    # For a chunk that is not full, who takes waits for the end of the last user.
    if [ $verb = mark ]; then wait_for test -s out; else wait_for test -d s/; fi
    kill -$signal $pid; wait $pid 2>/dev/null; code=$?
    exec 3>&-
    expect; [ $code -eq $((128 + $(kill -l $signal))) ] || wrong "$verb ended by $signal: $code"
    expect_closed s
  done
done

# timeout(1) sends its signal to the process and then to its group: what comes
# right behind the first one is the same wish, and does not cut its closing off.
for _ in 1 2 3; do
  rm -f twice
  begin out
  "$seen" uniq -q --state twice -n 3M -p 1e-9 <slow >out 2>/dev/null &
  pid=$!
  exec 3>slow
  cat long >&3
  wait_for test -s out
  kill -TERM $pid; sleep 0.002; kill -TERM $pid 2>/dev/null; wait $pid 2>/dev/null; code=$?
  exec 3>&-
  expect; [ $code -eq 143 ] || wrong "two signals: $code"
  expect_closed twice
  run bash -c "'$seen' uniq --state twice long | cat out - | cmp - long"; expect_code 0
done

# A later one does not wait, here for a reader that never reads.
run python3 -c 'import subprocess, sys, time
p = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
p.stdout.read(1)
for _ in range(100):
    p.terminate()
    time.sleep(0.1)
    if p.poll() is not None: break
print(p.returncode)
if p.returncode is None: p.kill()' "$seen" uniq -q --state stuck long; expect_out -15

# ---- Killed -----------------------------------------------------------------

begin out
"$seen" mark -q s --ack <slow >out &
pid=$!
exec 3>slow
printf 'cleo\tpost\n' >&3
wait_for test -s out
# Readers of a writer at work see its last checkpoint, and its journal on demand.
run bash -c "printf 'cleo\tpost\n' | '$seen' fresh s"; expect_out $'cleo\tpost'
run bash -c "printf 'cleo\tpost\n' | '$seen' fresh --tail s"; expect_out ''
kill -KILL $pid; wait $pid 2>/dev/null
exec 3>&-
expect_journal s
for tail in '' --tail; do
  run bash -c "printf 'cleo\tpost\n' | '$seen' fresh $tail s"; expect_code 0; expect_out ''; expect_silent
  run "$seen" info --json s --user cleo $tail; expect_json items 1
done
run "$seen" backup -q s copy; expect_code 0
run bash -c "printf 'cleo\tpost\n' | '$seen' fresh copy"; expect_out ''
expect_journal s # readers change nothing
run "$seen" info --json s; expect; grep -qE '"journal_bytes": [1-9]' .out || wrong "the journal that is read counts"
run "$seen" sweep -q s; expect_code 0; expect_closed s
run bash -c "printf 'cleo\tpost\n' | '$seen' fresh s"; expect_out ''

finish
