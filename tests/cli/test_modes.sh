#!/usr/bin/env bash
# test_modes.sh - who may read what a store of users and its copies leave on disk;
# stores through links; readers who may not write.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
umask 022

mode() { stat -c %a "$1"; }
# expect_modes MODE FILE...
expect_modes() {
  local want=$1 file
  shift
  for file; do expect; [ "$(mode "$file")" = "$want" ] || wrong "$file: mode $(mode "$file"), expected $want"; done
}
# killed STORE: a writer that died, and left its journal.
killed() {
  mkfifo events
  "$seen" mark -q --ack --batch 1 "$1" <events >ack 2>/dev/null &
  local pid=$!
  exec 9>events
  printf 'alice\tone\n' >&9
  wait_for test -s ack
  kill -KILL $pid; wait $pid 2>/dev/null
  exec 9>&-
  rm events ack
}

# A new store holds a secret: nobody but its maker reads it, whatever the umask, also
# where the directory was there already and everybody may look into it.
mkdir -m 755 open
for store in new open; do
  killed $store
  expect_modes 600 $store/data.mdb $store/lock.mdb $store/seen.lock $store/seen.journal-*
done
expect_modes 700 new
expect_modes 755 open
# What its maker allows later, new files of the store allow, too.
run "$seen" mark -q open bob one; expect_code 0
chmod 660 open/data.mdb; rm open/lock.mdb open/seen.lock
killed open
expect_modes 660 open/data.mdb open/lock.mdb open/seen.lock open/seen.journal-*
if [ "$(id -u)" = 0 ]; then
  "$seen" mark -q theirs bob one; chown -R 65534:4711 theirs; rm theirs/lock.mdb theirs/seen.lock
  killed theirs
  for file in theirs/data.mdb theirs/lock.mdb theirs/seen.lock theirs/seen.journal-*; do
    expect; [ "$(stat -c %u:%g "$file")" = 65534:4711 ] || wrong "$file: $(stat -c %u:%g "$file")"
  done
else
  echo "not root: owners are not tried"
fi

# A copy is its maker's, too. What a backup that died has left is removed, not
# adopted: somebody may have it open, or own it.
chmod 644 new/*
run "$seen" backup -q new copy; expect_code 0
expect_modes 700 copy
expect_modes 600 copy/*
mkdir -m 777 again.seen-new; echo old >again.seen-new/data.mdb; chmod 666 again.seen-new/data.mdb
before=$(stat -c %i again.seen-new/data.mdb)
exec 8<again.seen-new
run "$seen" backup -q new again; expect_code 0
expect_modes 700 again
expect_modes 600 again/*
expect; [ "$(stat -c %i again)" != "$(stat -L -c %i /dev/fd/8)" ] || wrong "the old directory was adopted"
exec 8<&-
expect; [ "$(stat -c %i again/data.mdb)" != "$before" ] || wrong "the old data.mdb was adopted"
expect_no_file again.seen-new
run bash -c "echo one | '$seen' fresh --tail again alice"; expect_out ''
# What is not of a backup stays, and is named.
mkdir precious; echo keep >precious/data.mdb; ln -s precious third.seen-new
run "$seen" backup new third; expect_failure "third.seen-new is in the way"
expect; [ "$(cat precious/data.mdb)" = keep ] || wrong "removed through a link"
rm third.seen-new; mkdir third.seen-new; echo keep >third.seen-new/notes
run "$seen" backup new third; expect_failure "third.seen-new is in the way"
expect_file third.seen-new/notes
expect_no_file third
# Where others could put a link in its place while it is removed, it stays, too.
stale() { mkdir "$1.seen-new"; echo old >"$1.seen-new/data.mdb"; }
for mode in 777 775; do
  mkdir -m $mode shared; chmod $mode shared
  # Where everybody could, nothing is written, either: not even a directory.
  run "$seen" backup -q new shared/copy
  if [ $mode = 777 ]; then
    expect_failure "shared/copy: every user can rename what is in that directory"
    expect; [ -z "$(ls shared)" ] || wrong "something is left in a directory that everybody can write"
    refused="every user can rename"
  else
    expect_code 0; rm -r shared/copy; refused="copy.seen-new is in the way"
  fi
  stale shared/copy
  run "$seen" backup new shared/copy; expect_failure "$refused"
  expect_file shared/copy.seen-new/data.mdb
  expect_no_file shared/copy
  chmod 1$mode shared # there, only its owner can rename it
  run "$seen" backup -q new shared/copy; expect_code 0
  expect_no_file shared/copy.seen-new
  rm -r shared
done
if [ "$(id -u)" = 0 ]; then
  stale fourth; chown 65534 fourth.seen-new
  run "$seen" backup new fourth; expect_failure "fourth.seen-new is in the way"
  expect_file fourth.seen-new/data.mdb
  mkdir -m 755 home; stale home/copy; chown 65534 home # its owner can rename it
  run "$seen" backup new home/copy; expect_failure "copy.seen-new is in the way"
  expect_file home/copy.seen-new/data.mdb
else
  echo "not root: directories of others are not tried"
fi

# Stores and copies through links, also to what is yet to be made.
mkdir real; ln -s real/store link; ln -s real/copy copied
run "$seen" mark -q link alice one; expect_code 0
expect; [ -L link ] && [ -f real/store/data.mdb ] || wrong "not made behind the link"
run bash -c "printf '%s\n' one two | '$seen' fresh link alice"; expect_out two
run "$seen" backup -q link/ copied; expect_code 0
expect; [ -L copied ] && [ -f real/copy/data.mdb ] || wrong "not copied behind the link"
run "$seen" backup link copied; expect_failure "is there already"

# The files of a store are regular files: what a link leads to is not written to, and
# nobody waits at a pipe.
"$seen" mark -q guarded alice one; echo keep >precious/file; cp -r guarded whole
each_verb() {
  run timeout -k 5 30 "$seen" fresh guarded alice lines; expect_failure "$1"
  run timeout -k 5 30 "$seen" fresh --tail guarded alice lines; expect_failure "$1"
  run timeout -k 5 30 "$seen" mark guarded alice two; expect_failure "$1"
  run timeout -k 5 30 "$seen" backup guarded guarded-copy; expect_failure "$1"
  expect_no_file guarded-copy; expect_no_file guarded-copy.seen-new
  expect; [ "$(cat precious/file)" = keep ] || { wrong "written through a link"; echo keep >precious/file; }
}
: >lines
for file in lock.mdb data.mdb; do
  rm guarded/$file; ln -s "$PWD/precious/file" guarded/$file
  each_verb "$file: is a symbolic link: expected a regular file"
  rm guarded/$file; ln -s "$PWD/nowhere" guarded/$file
  run "$seen" mark guarded alice two; expect_failure "$file: is a symbolic link: expected a regular file"
  expect_no_file nowhere
  rm guarded/$file; mkfifo guarded/$file
  each_verb "$file: is not a regular file"
  rm guarded/$file; cp whole/$file guarded/$file
done
rm -r guarded; mv whole guarded; killed guarded
segment=$(echo guarded/seen.journal-*); cp "$segment" segment
for made in "ln -s $PWD/segment" mkfifo; do
  rm "$segment"; $made "$segment"
  each_verb "journal: segment ${segment##*-}: is "
done
rm "$segment"; cp segment "$segment"
rm guarded/seen.lock; mkfifo guarded/seen.lock
run timeout -k 5 30 "$seen" fresh guarded alice lines; expect_failure "seen.lock"
run timeout -k 5 30 "$seen" mark guarded alice two; expect_failure "seen.lock: is not a regular file"
rm guarded/seen.lock
run "$seen" mark -q guarded alice two; expect_code 0
# The same of the journal of a filter file.
"$seen" build -q -n 100 -o journaled lines
mkfifo events; begin said
"$seen" add -q --ack --batch 1 journaled <events >said 2>/dev/null & pid=$!
exec 9>events; echo key >&9; wait_for test -s said
kill -KILL $pid; wait $pid 2>/dev/null; exec 9>&-; rm events
segment=$(echo journaled.journal-*); rm "$segment"; mkfifo "$segment"
for verb in check add; do run timeout -k 5 30 "$seen" $verb journaled lines; expect_failure "journal: segment ${segment##*-}: is not a regular file"; done

# A state through a link is the file behind it.
printf '%s\n' a b a >lines; ln -s real/state state
run "$seen" uniq --state state lines; expect_out $'a\nb'
run "$seen" uniq --state state lines; expect_out ''
expect; [ -L state ] && [ -f real/state ] || wrong "not kept behind the link"

# Readers who may not write: they share the writer's lock instead.
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null && chmod 755 . &&
  setpriv --reuid 65534 --regid 65534 --clear-groups "$seen" --version >/dev/null 2>&1; then
  nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
  "$seen" mark -q shared alice one
  run nobody "$seen" fresh shared alice lines; expect_code 2
  chmod 755 shared
  run nobody "$seen" fresh shared alice lines; expect_failure "data.mdb: Permission denied"
  chmod 644 shared/data.mdb
  run nobody "$seen" fresh shared alice lines; expect_failure "lock.mdb: Permission denied, and seen.lock: Permission denied"
  chmod 644 shared/*
  printf '%s\n' one two >lines
  for tail in "" --tail; do
    run nobody "$seen" fresh $tail shared alice lines; expect_out two; expect_code 0
  done
  run nobody "$seen" info shared; expect_code 0
  run nobody "$seen" mark shared alice two; expect_failure "Permission denied"
  # Beside a writer that would not be safe.
  mkfifo events
  "$seen" mark -q --ack --batch 1 shared <events >ack & pid=$!
  exec 9>events
  printf 'alice\ttwo\n' >&9; wait_for test -s ack
  run nobody "$seen" fresh shared alice lines; expect_failure "may not write lock.mdb"
  chmod 666 shared/lock.mdb
  run nobody "$seen" fresh --tail shared alice lines; expect_out ''
  exec 9>&-; wait $pid
  chmod 644 shared/lock.mdb
  run nobody "$seen" fresh shared alice lines; expect_out ''
  # Whoever may write to a file in a sticky directory may not replace it. That is told
  # before anything has changed; what is changed in place works.
  mkdir sticky; chmod 1777 sticky
  for kind in set cuckoo scalable blocked; do
    "$seen" build -q --kind $kind -n 1000 -o sticky/$kind lines; chmod 666 sticky/$kind
    before=$(sha256sum sticky/$kind)
    run nobody "$seen" uniq --state sticky/$kind lines; expect_failure "sticky/$kind: belongs to another user, in a sticky directory"
    expect; [ "$(sha256sum sticky/$kind; ls sticky)" = "$before"$'\n'"$kind" ] || wrong "sticky/$kind has changed, or something is left beside it"
    printf '%s\n' one three >later; chmod 644 later
    run nobody "$seen" add -q sticky/$kind later
    if [ $kind = blocked ]; then
      expect_code 0; run "$seen" check -c sticky/$kind later; expect_out 2
    else
      expect_failure "sticky/$kind: belongs to another user"
      expect; [ "$(sha256sum sticky/$kind; ls sticky)" = "$before"$'\n'"$kind" ] || wrong "sticky/$kind has changed, or something is left beside it"
    fi
    run "$seen" uniq --state sticky/$kind later; expect_code 0
    rm sticky/$kind
  done
  chown 65534 sticky # its owner can
  "$seen" build -q --kind set -o sticky/set lines; chmod 666 sticky/set
  run nobody "$seen" uniq --state sticky/set later; expect_out three
else
  echo "not root, or no setpriv: readers who may not write are not tried"
fi
finish
