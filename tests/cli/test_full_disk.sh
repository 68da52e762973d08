#!/usr/bin/env bash
# test_full_disk.sh - a disk without space is an error that says so, with the
# name, for every verb that writes; never a signal; and nothing is left behind that
# would be refused when there is space again.
#
# The disk is a tmpfs of a few pages, in a mount namespace of its own.
if [ "${SEEN_TEST_INSIDE:-}" != yes ]; then
  if SEEN_TEST_INSIDE=yes unshare -m true 2>/dev/null; then
    SEEN_TEST_INSIDE=yes exec unshare -m --propagation private "$0" "$@"
  fi
  echo "no mount namespace: full disks are not tried"
  exit 0
fi
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
mkdir disk
if ! mount -t tmpfs -o size=4m tmpfs disk 2>/dev/null; then
  echo "no mount: full disks are not tried"
  exit 0
fi
trap 'umount "$work/disk"; rm -rf "$work"' EXIT

free_pages() { stat -f -c %a disk; }
# leave N: fill the disk, but for so many pages. The filler has its last page in
# the directory before it takes the others.
leave() {
  : >disk/filler
  local take=$(($(free_pages) - $1))
  [ $take -le 0 ] || fallocate -l $((take * 4096)) disk/filler
}
# expect_full NAME: it worked, or an error that names it.
expect_full() {
  expect
  case $code in
    0) ;;
    2) [[ $err == *"$1"*"No space left"* ]] || wrong "expected $1 and No space left" ;;
    *) wrong "expected an error, not a signal" ;;
  esac
}

seq 1 2000 >keys; seq 2001 4000 >others

# Stores: made, changed, read, copied.
full=0
for pages in $(seq 0 24) 30 40 300; do
  leave "$pages"
  run "$seen" mark disk/store alice one; expect_full disk/store
  full=$((full + (code == 2)))
  made=$code
  rm disk/filler
  run "$seen" mark -q disk/store alice two; expect_code 0
  printf '%s\n' one two >lines
  run "$seen" fresh disk/store alice lines; expect_code 0
  [ "$made" -ne 0 ] || expect_out ''
  rm -rf disk/store
done
expect; [ $full -gt 5 ] || wrong "the disk was never full"

"$seen" mark -q store alice one
"$seen" backup -q store backup
printf '%s\n' one two >lines
for pages in 0 1 2 5 10 16 17 18 30; do
  cp -r backup disk/backup; rm -f disk/backup/lock.mdb
  leave "$pages"
  run "$seen" fresh disk/backup alice lines; expect_code 0; expect_out two
  rm -rf disk/*
  cp -r backup disk/backup
  "$seen" fresh disk/backup alice lines >/dev/null
  leave "$pages"
  run "$seen" fresh disk/backup alice lines; expect_code 0; expect_out two
  run "$seen" mark disk/backup alice two; expect_full disk/backup
  run "$seen" backup store disk/copy; expect_full disk/copy
  [ "$code" -eq 0 ] || { expect_no_file disk/copy; expect_no_file disk/copy.seen-new; }
  rm -rf disk/*
done

# What was a store is not begun again, however little is left of it.
mkdir half; head -c 4096 store/data.mdb >half/data.mdb
run "$seen" mark half alice one; expect_code 2
truncate -s 0 half/data.mdb
run "$seen" mark -q half alice one; expect_code 2

# Filter files: new ones, and those that are changed in place or beside.
for kind in blocked bloom cuckoo set scalable; do
  "$seen" build -q --kind $kind -n 300000 -o whole keys
  for pages in 0 1 3 60; do
    cp whole disk/f; leave "$pages"
    run "$seen" build -n 300000 --kind $kind -o disk/new keys; expect_full disk/new
    [ "$code" -eq 0 ] || { expect_no_file disk/new; expect_no_file disk/new.seen-new; }
    rm -f disk/new
    leave "$pages"
    run "$seen" add disk/f others; expect_full disk/f
    changed=$code
    rm disk/filler
    run "$seen" check -qv disk/f keys; expect_code 1
    [ "$changed" -ne 0 ] || { run "$seen" check -qv disk/f others; expect_code 1; }
    run "$seen" verify disk/f; expect_code 0
    rm -f disk/*
  done
done

# A file with holes has no blocks for them yet.
"$seen" build -q --kind blocked -n 1000000 -o whole </dev/null
for pages in 0 2 10 200; do
  cp --sparse=always whole disk/f; leave "$pages"
  # Readers do without: tmpfs would take blocks for them.
  run "$seen" info disk/f; expect_code 0
  run "$seen" verify disk/f; expect_code 0; expect_out "disk/f: good"
  run "$seen" check -c disk/f keys; expect_out 0
  run "$seen" merge --force -qo merged disk/f whole; expect_code 0
  run "$seen" add disk/f keys; expect_code 2; expect_full disk/f
  rm disk/filler
  run "$seen" add -q disk/f keys; expect_code 0
  run "$seen" check -qv disk/f keys; expect_code 1
  rm -f disk/*
done

# The rest that writes.
"$seen" build -qn 300000 -o a keys; "$seen" build -qn 300000 -o b others
leave 2
for command in "merge -o disk/x a b" "build -n 300000 --dialect guava -o disk/x keys" \
  "uniq --state disk/x -n 300000 keys"; do
  # shellcheck disable=SC2086
  run "$seen" $command; expect
  [ "$code" -eq 2 ] && [[ $err == *disk/x*"No space left"* ]] || wrong "expected an error with the name"
  expect_no_file disk/x
done
run bash -c "'$seen' uniq keys >disk/x"; expect_code 2; expect_err "No space left"
finish
