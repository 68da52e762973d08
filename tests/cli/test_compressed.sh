#!/usr/bin/env bash
# test_compressed.sh - gzip, zstd, xz and bzip2 as input: recognised by content, the same
# lines as of the plain file, and nothing lost or invented where data is damaged.
# Also run under the sanitizers.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

run "$seen" uniq <(printf 'a\n' | gzip)
if [[ $err == *"this build does not read"* ]]; then
  expect_code 2; expect_out ''
  finish
  exit
fi

# ---- The same lines ---------------------------------------------------------

awk 'BEGIN { srand(5); for (i = 0; i < 60000; i++)
  print "https://example.com/" int(rand() * 25000) "/" int(rand() * 2) }' >lines
awk '!s[$0]++' lines >wanted
head -n 20000 lines >one; sed -n "20001,40000p" lines >two; tail -n +40001 lines >three
gzip -k lines one; zstd -q lines two; gzip -c three | cat - >looks.plain
zstd -q --long=31 lines -o long.zst
xz -k lines two; bzip2 -1 -k lines three; xz -T2 --block-size=100KiB -c lines >threads.xz
xz -9e -c lines >best.xz; xz --check=sha256 -c lines >sha.xz; xz --delta=dist=4 --lzma2=preset=1 -c lines >delta.xz
cat two.xz <(xz -c three) >streams.xz; (cat two.xz; head -c 8 /dev/zero; xz -c three) >spaced.xz
bzip2 -c two | cat - three.bz2 >streams.bz2
cat one.gz looks.plain >members.gz; zstd -q -c three | cat two.zst - >frames.zst

# same ARGUMENTS...: the lines that awk keeps, and no word.
same() {
  run "$seen" uniq "$@"
  expect_code 0; expect_silent
  expect; cmp -s .out wanted || wrong "other lines than those of the plain file"
}

for mode in "" "-j2" "-j5" "--line-buffered"; do
  # shellcheck disable=SC2086
  for file in lines.gz lines.zst lines.xz lines.bz2; do
    same $mode $file
    input=$file same $mode
    expect; cat $file | "$seen" uniq $mode | cmp -s - wanted || wrong "$mode: $file from a pipe"
  done
done
same long.zst
for file in threads.xz best.xz sha.xz delta.xz; do same $file; done
same one.gz two.xz three.bz2
same one.gz two.zst looks.plain
same one two.zst looks.plain
expect; cat two.zst | "$seen" uniq one.gz - three | cmp -s - wanted || wrong "stdin among files"
awk '!s[$0]++' one three >wanted
same members.gz
awk '!s[$0]++' two three >wanted
same frames.zst
same -j2 frames.zst
for file in streams.xz spaced.xz streams.bz2; do same $file; same -j2 $file; done
run "$seen" uniq -d -c lines.gz; expect_out "$(awk 's[$0]++' lines | wc -l)"

# Content decides, not the name; nothing but the beginning is looked at.
printf 'a\nb\na\n' >named.gz
run "$seen" uniq named.gz; expect_out $'a\nb'
printf 'x\n\x1f\x8b\x08\n' >inside
expect; "$seen" uniq inside | cmp -s - inside || wrong "magic bytes on the second line"
printf '(\nP*M\nBZh9\nPK\n' >almost
expect; "$seen" uniq almost | cmp -s - almost || wrong "lines that begin like a magic"
for start in '\x1f' '\x28\xb5' '\x28\xb5\x2f' 'P*M' BZh91AY BZh5 '\xfd7zXZ'; do
  # shellcheck disable=SC2059
  printf "$start" >short
  expect; "$seen" uniq short | cmp -s - <(cat short; echo) || wrong "a file of a part of a magic: $start"
done

# Nothing inside, and lines without an end.
gzip </dev/null >empty.gz; zstd -q </dev/null >empty.zst; xz </dev/null >empty.xz; bzip2 </dev/null >empty.bz2
run "$seen" uniq empty.gz empty.zst empty.xz empty.bz2; expect_code 0; expect_out ''; expect_silent
expect; printf 'a\nb' | gzip | "$seen" uniq - named.gz | cmp -s - <(printf 'a\nb\n') || wrong "no last newline"
expect; printf 'a\nb\0c\0a\nb\0' | gzip | "$seen" uniq -0 | cmp -s - <(printf 'a\nb\0c\0') || wrong "-0, gzip"
expect; printf 'x\0y\0x\0' | zstd -q | "$seen" uniq -0 | cmp -s - <(printf 'x\0y\0') || wrong "-0, zstd"
head -c 20000000 /dev/zero | tr '\0' x >huge; echo >>huge
expect; gzip -1 <huge | "$seen" uniq | cmp -s - huge || wrong "a line of 20 MB, gzip"
expect; zstd -q <huge | "$seen" uniq -j2 | cmp -s - huge || wrong "a line of 20 MB, zstd"
rm -f huge

# What was compressed counts, against what is there.
for file in lines.gz lines.zst lines.xz lines.bz2; do
  run "$seen" uniq -c --json $file
  expect; grep -q "\"bytes\": $(stat -c %s $file)," .out || wrong "bytes of $file"
done

# ---- Padding and what is not padding ----------------------------------------

(printf 'a\nb\n' | gzip; head -c 100000 /dev/zero) >padded.gz
run "$seen" uniq padded.gz named.gz; expect_code 0; expect_out $'a\nb'; expect_silent
(printf 'a\nb\n' | gzip; echo garbage) >garbage.gz
at=$(printf 'a\nb\n' | gzip | wc -c)
run "$seen" uniq garbage.gz named.gz
expect_code 2; expect_out $'a\nb'
expect_err "garbage.gz: bad gzip data at byte $at: expected another member, zeros or the end"
(printf 'a\nb\n' | zstd -q; echo garbage) >garbage.zst
run "$seen" uniq garbage.zst named.gz
expect_code 2; expect_out $'a\nb'; expect_err "garbage.zst: bad zstd data at byte"
(printf 'a\nb\n' | gzip; cat empty.zst) >both
for pack in bzip2 xz; do
  (printf 'a\nb\n' | $pack; echo garbage) >garbage.$pack
  run "$seen" uniq garbage.$pack named.gz
  expect_code 2; expect_out $'a\nb'
  expect_err "garbage.$pack: bad $pack data at byte $(printf 'a\nb\n' | $pack | wc -c): expected another"
done
for file in archive.zip archive.Z archive.7z archive.lz4; do
  case $file in
  *.zip) start='PK\x03\x04' ;; *.Z) start='\x1f\x9d\x90' ;;
  *.7z) start='7z\xbc\xaf\x27\x1c' ;; *) start='\x04\x22\x4d\x18' ;;
  esac
  # shellcheck disable=SC2059
  printf "$start\x0a\n" >$file
  run "$seen" build -n 10 -o no.seen $file; expect_failure "$file: is compressed with "; expect_err "decompress it first"
  expect_no_file no.seen
done
run "$seen" uniq both; expect_code 2; expect_out $'a\nb'; expect_err "both: bad gzip data at byte $at"

# ---- Damage -----------------------------------------------------------------

# Every output is whole lines from the beginning of what was compressed.
awk '!s[$0]++' lines >wanted
damaged() { # FILE WHAT
  expect_code 2; expect_err "$1: bad "; expect_err "$2"
  expect; head -c "$(stat -c %s .out)" wanted | cmp -s - .out || wrong "other lines than those before the damage"
  expect; [ ! -s .out ] || [ "$(tail -c 1 .out | wc -l)" -eq 1 ] || wrong "a part of a line"
}

for file in lines.gz lines.zst lines.xz lines.bz2; do
  size=$(stat -c %s $file)
  for len in 4 5 9 10 17 18 100 1000 65535 65536 65537 $((size / 3)) $((size / 2)) \
    $((size - 9)) $((size - 8)) $((size - 4)) $((size - 1)); do
    case $file in *.xz) magic=6 ;; *.bz2) magic=10 ;; *) magic=4 ;; esac
    [ "$len" -ge $magic ] || continue # a line like any other
    head -c "$len" $file >broken
    run "$seen" uniq broken named.gz
    damaged broken "data at byte $len: unexpected end"
    expect; [ "$len" -lt $((size / 3)) ] || [ -s .out ] || wrong "no lines before the cut at $len"
  done
  # What can be decompressed of a cut file is printed, with any number of threads.
  head -c $((size / 2)) $file >broken
  if [ $file = lines.gz ]; then gzip -dcq broken; else zstd -dcq broken; fi >before 2>.err
  sed '$d' before | awk '!s[$0]++' >before.wanted
  for threads in 1 2 4; do
    run "$seen" uniq -j $threads broken lines
    damaged broken "unexpected end"
    expect; [ "$(wc -l <.out)" -ge "$(wc -l <before.wanted)" ] || wrong "lines before the cut are missing, -j $threads"
  done
  # A changed byte is noticed, at the latest by a checksum, or means the same.
  noticed=0
  for i in $(seq 30 $((size / 40)) $((size - 9))); do
    cp $file flipped
    byte=$(tail -c +$((i + 1)) $file | head -c 1 | od -An -tu1)
    # shellcheck disable=SC2059
    printf "\\x$(printf %x $((byte ^ 0x55)))" | dd of=flipped bs=1 seek="$i" conv=notrunc 2>/dev/null
    run "$seen" uniq -c flipped
    if [ "$code" -eq 0 ]; then expect_out "$(wc -l <wanted)"; continue; fi
    noticed=$((noticed + 1))
    expect_code 2; expect_out ''; expect_err "flipped: bad "; expect_err " data at byte "
  done
  expect; [ $noticed -ge 30 ] || wrong "only $noticed changes noticed"
done
printf '\x1f\x8b\x07\0\0\0\0\0\0\0' >method
run "$seen" uniq method; expect_failure "method: bad gzip data at byte "
expect_err "unknown compression method"
printf '\x1f\x8b' >magic
run "$seen" uniq magic; expect_failure "magic: bad gzip data at byte 2: unexpected end"

# A frame of one line that asks for a window of 2^28 bytes, more than zstd grants
# without --long, and one of 2^32, which nobody does.
printf '\x28\xb5\x2f\xfd\0\x90\x11\0\0a\n' >wide
if [ "$(getconf LONG_BIT)" -ge 64 ]; then run "$seen" uniq wide; expect_code 0; expect_out a; fi
printf '\x28\xb5\x2f\xfd\0\xb0\x11\0\0a\n' >wider
run "$seen" uniq wider; expect_failure "wider: bad zstd data at byte "; expect_err memory

# ---- Through pipes ----------------------------------------------------------

# One byte at a time: each reaches the reader by itself, or with few others.
drip() {
  local i
  for ((i = 1; i <= $(stat -c %s "$1"); i++)); do
    tail -c +$i "$1" | head -c 1
    [ $i -gt 8 ] || sleep 0.02
  done
}
printf 'a\nb\na\n' | gzip >small.gz; printf 'a\nb\na\n' | zstd -q >small.zst
printf 'a\nb\na\n' | xz >small.xz; printf 'a\nb\na\n' | bzip2 >small.bz2
for file in small.gz small.zst small.xz small.bz2 named.gz almost; do
  expect; drip $file | "$seen" uniq >.out
  "$seen" uniq $file | cmp -s - .out || wrong "$file, byte by byte"
done

for preset in 0 1 6 9; do
  xz --format=lzma -$preset -c one >old.lzma
  run "$seen" uniq old.lzma; expect_failure "is compressed with lzma, which this build does not read: decompress it first"
done

# What has been decompressed is shown while the writer thinks. The files of the
# answers are looked at until they are right: only a line that never comes fails.
shows() { # TEXT
  shown() { [ "$(cat fast)" = "$1" ]; }
  last="$pack | uniq $mode"; expect; wait_for shown "$1"
}
mkfifo slow
for pack in cat gzip "zstd -q" xz bzip2; do
  for mode in "" -j3 --line-buffered; do
    # shellcheck disable=SC2086
    begin fast
    "$seen" uniq $mode <slow >fast &
    exec 3>slow
    echo a | $pack >&3; shows a
    printf 'a\nb\nc' | $pack >&3; shows $'a\nb'
    echo d | $pack >&3; shows $'a\nb\ncd'
    exec 3>&-
    wait $!
    code=$?
    expect_code 0
  done
done

# A reader that goes away while the writer still writes.
run timeout 10 bash -c "yes | gzip -1 | '$seen' uniq -d | head -n 3"
expect_out $'y\ny\ny'
finish
