#!/usr/bin/env bash
# test_dialects.sh - filters of other systems: build, check, info, add, convert.
vectors=$(realpath "$(dirname "$0")/../vectors")
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

# load NAME: $dialect, $told (options to open it), $made (to build it), $keys,
# $strangers and $maybe (how many of those) of a vector.
load() {
  dialect='' made=() told=() rebuild=yes encoding='' built=''
  local word value
  while read -r word value; do
    case $word in
      dialect) dialect=$value ;;
      items) made+=(-n "$value") ;;
      fpp) made+=(-p "$value") ;;
      bits) made+=(--bits "$value") ;;
      bits_per_key) made+=(--bits-per-key "$value") ;;
      rebuild) rebuild=no ;;
      encoding) encoding=$value ;;
      keys) keys=$vectors/keys/$value.txt ;;
      built_from) built=$vectors/keys/$value.txt ;;
      strangers) strangers=$vectors/strangers/$value.txt ;;
      maybe) maybe=$(wc -w <<<"$value") ;;
    esac
  done <"$vectors/$1/vector.txt"
  told=(--hex --dialect "$dialect" "${made[@]}")
  if [ "$encoding" = utf16 ]; then told+=(--key-type utf16); fi
  file=$vectors/$1/filter.bin
}

# ---- What the others wrote --------------------------------------------------

for directory in "$vectors"/*/vector.txt; do
  name=$(basename "$(dirname "$directory")")
  load "$name"
  run "$seen" check -v "${told[@]}" "$file" "$keys"; expect_code 1; expect_silent
  run "$seen" check -c "${told[@]}" "$file" "$strangers"; expect_out "$maybe"
  run bash -c "'$seen' check -c ${told[*]} - '$strangers' <'$file'"; expect_out "$maybe"
  run "$seen" info --dialect "$dialect" "${made[@]}" "$file"; expect_code 0
  expect; grep -q "^  dialect   $dialect: " .out || wrong "info names the dialect"
  expect; grep -q "^  weak  " .out || wrong "info says what is weak"
  run "$seen" info --json --dialect "$dialect" "${made[@]}" "$file"; expect_json dialect "\"$dialect\""
  run "$seen" convert -q --dialect "$dialect" "${made[@]}" "$file" --to native -o "$name.seen"; expect_code 0
  run "$seen" verify "$name.seen"; expect_code 0
  run "$seen" check -c --hex "$name.seen" "$strangers"
  if [ "$encoding" != utf16 ]; then expect_out "$maybe"; fi
  run "$seen" convert -q "$name.seen" --to "$dialect" -o "$name.back"; expect_code 0
  expect; [ "$encoding" = gzip ] || cmp -s "$name.back" "$file" || wrong "$name comes back from our container"
  if [ "$rebuild" = no ] || [ -n "$built" ] || [ "$encoding" = gzip ]; then continue; fi
  run "$seen" build -q "${told[@]}" -o "$name.built" "$keys"; expect_code 0; expect_silent
  expect; cmp -s "$name.built" "$file" || wrong "$name built from its keys is the same bytes"
  run "$seen" add -q "${told[@]}" "$name.added" "$keys"; expect_code 0
  expect; cmp -s "$name.added" "$file" || wrong "$name made by add is the same bytes"
  head -n 500 "$keys" >half; tail -n +501 "$keys" >rest
  if [ "$(wc -l <"$keys")" -ne 1000 ]; then continue; fi
  run "$seen" build -q "${told[@]}" -o "$name.half" half
  run "$seen" add -q "${told[@]}" "$name.half" rest; expect_code 0; expect_silent
  expect; cmp -s "$name.half" "$file" || wrong "$name from two halves is the same bytes"
done

# They have no secret, so one that is given is a mistake, wherever it is.
printf 'a\nb\n' >few
"$seen" build -q --dialect dcso -n 10 -p 1% -o plain few
"$seen" convert -q plain --to native -o contained
for verb in 'add new --dialect dcso -n 10' 'build -o new --dialect dcso -n 10' 'add plain' 'add contained' 'check plain' 'check contained'; do
  # shellcheck disable=SC2086 # words
  run "$seen" $verb --secret-file key few; expect_code 2; expect_out ''; expect_err "secret"
  expect_no_file key; expect_no_file new
done
run "$seen" info --secret-file key plain; expect_failure "plain: filters of other systems have no secret: leave out --secret-file"

# ---- gzip around DCSO's filters ----------------------------------------------

load dcso-cli-gzip
run "$seen" convert -q "$file" --to dcso -o plain; expect_code 0
expect; cmp -s plain <(gzip -dc "$file") || wrong "unpacked"
run "$seen" convert -q plain --to dcso-gzip -o packed; expect_code 0
expect; cmp -s plain <(gzip -dc packed) || wrong "packed"
run "$seen" build -q --hex --dialect dcso-gzip -n 1000 -p 2% -o packed "$keys"; expect_code 0
expect; cmp -s plain <(gzip -dc packed) || wrong "built and packed"
echo 00ff >another
run "$seen" add -q --hex packed another; expect_code 0
run "$seen" add -q --hex plain another; expect_code 0
expect; cmp -s plain <(gzip -dc packed) || wrong "a packed filter stays one"
run bash -c "'$seen' check -c --hex - '$keys' <packed"; expect_out 1000
"$seen" merge -q -o sum plain plain
for named in '' '--dialect dcso-gzip' '--dialect dcso'; do
  # shellcheck disable=SC2086 # words
  run "$seen" merge -q $named -o merged packed packed; expect_code 0
  expect; cmp -s sum <(gzip -dc merged) || wrong "packed filters give a packed one"
done
run "$seen" merge -q -o merged plain packed; expect_code 0; expect; cmp -s sum merged || wrong "the first one counts"
run "$seen" merge --key-type nonsense -o merged plain packed; expect_failure "--key-type nonsense: expected"
run "$seen" check --dialect dcso-gzip plain "$keys"; expect_failure "is not a gzip file of a DCSO filter"
head -c 500 packed >half.gz
run "$seen" check half.gz "$keys"; expect_failure "its gzip is damaged, cut off"
(cat packed; echo x) >longer
run "$seen" check longer "$keys"; expect_failure "something behind it"
gzip -c "$keys" >keys.gz
run "$seen" check keys.gz "$keys"; expect_code 2

# ---- Which dialect is it? ---------------------------------------------------

load exposure-list
run "$seen" check -c --hex -n 1000 -p 0.001 "$file" "$strangers"; expect_out 0; expect_silent
run "$seen" info "$file"; expect_failure "as exposure-list: --hashes: expected, or keys and a rate"
# A DCSO filter of 64 bits, with data that ends like a RocksDB block.
{
  printf '\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\0\0\xe0\x3f'
  printf '\1\0\0\0\0\0\0\0\x40\0\0\0\0\0\0\0'
  head -c 24 /dev/zero; printf '\xff\0\6\0\0'
} >two
run "$seen" info two; expect_failure "could be any of dcso, rocksdb: say which with --dialect"
run "$seen" info --dialect rocksdb two; expect_code 0
run "$seen" info --dialect dcso two; expect_code 0
load leveldb
run "$seen" info "$file"; expect_failure "if another system wrote it, say which: --dialect"
run "$seen" info --dialect nobody "$file"; expect_failure "expected a dialect: leveldb, "
run "$seen" check --dialect gozero "$file" /dev/null; expect_failure "as gozero: --bits: expected"
run "$seen" check --dialect gozero --bits 20 "$file" /dev/null; expect_failure "at or beyond bit 20"
seq 1 100 >numbers
"$seen" build -q -o ours numbers
run "$seen" check --dialect leveldb ours numbers; expect_failure "is a filter of seen itself, of kind blocked"

# ---- Change -----------------------------------------------------------------

"$seen" build -q --dialect leveldb --bits-per-key 10 -o block numbers
cp block before
run "$seen" add --dialect leveldb --ack block numbers; expect_failure "--ack: a filter of another system"
run "$seen" add -q --dialect leveldb block numbers; expect_code 0
expect; cmp -s block before || wrong "adding what is there changes nothing"
printf '\0\0\0\0\0\0\0\0\37' >reserved
cp reserved before
run "$seen" add --dialect leveldb reserved numbers; expect_code 2; expect_err "cannot be added"
expect; cmp -s reserved before || wrong "a block of a form to come is not touched"
run "$seen" check -c --dialect leveldb reserved numbers; expect_out 100
run "$seen" remove --dialect leveldb block numbers; expect_failure "cannot remove single keys"
run "$seen" uniq --state "$name.seen" numbers; expect_failure "is a filter of another system"
chmod 640 block
"$seen" add -q --dialect leveldb block <<<new
expect; [ "$(stat -c %a block)" = 640 ] || wrong "the mode of the file stays"
ln -s block link
run "$seen" add -q --dialect leveldb link numbers; expect_code 0
expect; [ -L link ] || wrong "a link stays a link"
run "$seen" add -q shown.seen numbers --dialect gozero --bits 2000; expect_code 0
run "$seen" convert -q shown.seen --dialect gozero --bits 2000 --to native -o inside; expect_code 0
run "$seen" add -q inside <<<x; expect_code 0
run "$seen" add inside; expect_code 0; expect_err "inside: 0 lines"
run bash -c "echo another | '$seen' add -q inside; echo another | '$seen' check inside"; expect_out another

load redisbloom-cf
run "$seen" build -q --hex --dialect redisbloom-cf -n 1500 -o cuckoo "$built"; expect_code 0
run "$seen" remove -q --hex cuckoo "$vectors/keys/redisbloom-cf-removed.txt"; expect_code 0; expect_silent
expect; cmp -s cuckoo "$file" || wrong "added and removed, the same bytes"
run "$seen" remove --hex cuckoo "$vectors/keys/redisbloom-cf-removed.txt"; expect_err "not found"
run "$seen" info cuckoo; expect; grep -q 'RedisBloom CF' .out || wrong "sniffed"
# In a container of ours it can forget all the same, and others cannot.
run "$seen" build -q --hex --dialect redisbloom-cf -n 1500 -o cuckoo "$built"; expect_code 0
run "$seen" convert -q cuckoo --to native -o contained-cf; expect_code 0
run "$seen" remove -q --hex contained-cf "$vectors/keys/redisbloom-cf-removed.txt"; expect_code 0; expect_silent
run "$seen" convert -q contained-cf --to redisbloom-cf -o back; expect_code 0
expect; cmp -s back "$file" || wrong "removed in the container, the same bytes"
run "$seen" remove contained few; expect_failure "contained: dcso filters cannot remove single keys"
run "$seen" remove --dialect dcso contained-cf few; expect_failure "contained-cf: is a file of seen that holds a redisbloom-cf filter, --dialect says dcso"
run "$seen" check --dialect leveldb contained few; expect_failure "contained: is a file of seen that holds a dcso filter, --dialect says leveldb"

# ---- Merge ------------------------------------------------------------------

seq 1 50 >low; seq 51 100 >high
"$seen" build -q --dialect gozero --bits 2000 -o a low
"$seen" build -q --dialect gozero --bits 2000 -o b high
"$seen" build -q --dialect gozero --bits 2000 -o ab numbers
run "$seen" merge -q --dialect gozero --bits 2000 -o merged a b; expect_code 0
expect; cmp -s merged ab || wrong "the union is the filter of all keys"
run "$seen" merge -q -o merged ours block --dialect leveldb; expect_failure "ours"

# ---- Convert ----------------------------------------------------------------

run "$seen" convert block --dialect leveldb --to badger -o other; expect_code 0; expect_err "other: block as badger"
expect; cmp -s block other || wrong "badger's blocks are LevelDB's"
run "$seen" convert block --dialect leveldb --to gozero -o other
expect_failure "a gozero filter has the bits of a key elsewhere than a leveldb: build one from the keys, seen build --dialect gozero"
run "$seen" convert ours --to gozero -o other; expect_failure "than one of ours of kind blocked"
run "$seen" convert ours --to native -o other; expect_failure "in our own container already"
run "$seen" convert block --to native -o other; expect_failure "--dialect"
run "$seen" convert block -o other; expect_failure "--to is missing"
run "$seen" convert --to nobody block -o other; expect_failure "expected native or a dialect"
run "$seen" convert --to native; expect_failure "expected one filter"
run "$seen" convert --help; expect_code 0

# ---- Plan, dialects ---------------------------------------------------------

run "$seen" plan --dialect gozero -n 1e6 --json; expect_json bits 20000000; expect_json hashes 14; expect_json dialect '"gozero"'
run "$seen" plan --dialect gozero -n 1e6; expect_code 0
expect; grep -q 'gozero .* 20.00 .* 14 ' .out || wrong "20 bits a key"
run "$seen" plan --dialect leveldb -n 1000 -p 1% --json; expect_json bits 10000; expect_json hashes 6
run "$seen" plan --dialect leveldb -n 1000 --bits-per-key 20 --json; expect_json hashes 13
run "$seen" plan --dialect leveldb -n 1000; expect_failure "--bits-per-key: expected, or a rate"
run "$seen" plan --dialect gozero --kind bloom -n 9; expect_failure "exclude each other"
run "$seen" plan --bits-per-key 8 -n 9; expect_failure "--bits-per-key requires --dialect"
run "$seen" plan --bits-per-key 0 -n 9; expect_failure "a number above 0"
run "$seen" dialects -q; expect_code 0; expect_silent
run "$seen" convert "$vectors/bits-and-blooms/filter.bin" --to bits-and-blooms-json -o -
expect; [ "$out" = "$(cat "$vectors/bits-and-blooms-json/filter.bin")" ] || wrong "as JSON"
run "$seen" dialects
for d in leveldb gozero gobloom kevburnsjr exposure-list redisbloom guava dcso parquet rocksdb valkey-bloom; do
  expect; grep -q "^$d " .out || wrong "dialects names $d"
done
run "$seen" dialects --json; expect_json name '"badger"'; expect_json sniff true
run "$seen" dialects x; expect_failure "takes no operands"

# ---- Kinds of keys ----------------------------------------------------------

printf '%s\n' 1 -1 2147483647 >ints
printf '00000001\nffffffff\n7fffffff\n' >ints.hex
"$seen" build -q --dialect kevburnsjr -n 10 -p 1% --key-type i32 -o i32 ints
"$seen" build -q --dialect kevburnsjr -n 10 -p 1% --hex -o i32.hex ints.hex
expect; cmp -s i32 i32.hex || wrong "kevburnsjr's integers are 4 bytes, big-endian"
told=(--dialect kevburnsjr -n 10 -p 1%)
"$seen" convert -q i32 "${told[@]}" --to native -o i32.seen
run "$seen" check -c --key-type i32 i32.seen ints; expect_out 3
run bash -c "'$seen' check -c --key-type i32 - ints <i32.seen"; expect_out 3
"$seen" build -q "${told[@]}" --key-type i32 -o none /dev/null; "$seen" convert -q none "${told[@]}" --to native -o added.seen
run "$seen" add -q --key-type i32 added.seen ints; expect_code 0
run "$seen" convert -q added.seen --to kevburnsjr -o added; expect; cmp -s added i32 || wrong "in a container as well"
printf '0100000000000000\nffffffffffffffff\nffffff7f00000000\n' >longs.hex
"$seen" build -q --dialect leveldb -n 10 -p 1% --key-type i64 -o i64 ints
"$seen" build -q --dialect leveldb -n 10 -p 1% --hex -o i64.hex longs.hex
expect; cmp -s i64 i64.hex || wrong "integers are little-endian elsewhere"
printf 'a\xc3\xa9\xf0\x9f\x98\x80\n' >text
echo 6100e9003dd800de >text.hex
"$seen" build -q --dialect leveldb -n 10 -p 1% --key-type utf16 -o u16 text
"$seen" build -q --dialect leveldb -n 10 -p 1% --hex -o u16.hex text.hex
expect; cmp -s u16 u16.hex || wrong "UTF-16 is little-endian, with surrogates"
for bad in '\xff' '\xc3' '\xed\xa0\x80' '\xc0\x80' '\xf4\x90\x80\x80'; do
  # shellcheck disable=SC2059 # bytes
  printf "$bad\n" >bad
  run "$seen" check --dialect leveldb --key-type utf16 u16 bad; expect_code 2; expect_err "expected UTF-8"
done
echo 2147483648 >bad
run "$seen" check --dialect leveldb --key-type i32 i64 bad; expect_code 2; expect_err "32 bits"
run "$seen" check --dialect leveldb --key-type i64 -c i64 bad; expect_out 0
run "$seen" check --dialect leveldb --key-type u7 i64 ints; expect_failure "expected bytes, utf8, utf16, i32 or i64"
run "$seen" check --dialect leveldb --key-type i32 --hex i64 ints; expect_failure "leave out --hex"

# Whoever opens filters of other systems takes all that may have to be told.
for verb in 'info i64' 'plan' 'convert i64 --to native -o native.seen'; do
  # shellcheck disable=SC2086 # words
  run "$seen" $verb --dialect leveldb -n 10 -p 1% --key-type i64; expect_code 0
  # shellcheck disable=SC2086
  run "$seen" $verb --dialect leveldb -n 10 -p 1% --key-type u7; expect_failure "expected bytes, utf8"
done
run "$seen" uniq --key-type i64 ints; expect_failure "unknown option --key-type"
run "$seen" convert i64 --dialect leveldb --to native -o native.seen --json; expect_code 0; expect_silent
expect_json from '"leveldb"'; expect_json to '"native"'; expect_json file '"native.seen"'


# A newline behind the last byte, as redis-cli appends it: said where it shows, and
# where the length alone tells the bits of a filter, suspected.
seq 100 >hundred
for dialect in $("$seen" dialects --json | sed -n 's/.*"name": "\(.*\)".*/\1/p'); do
  size=(-n 100 -p 0.01) ask=("${size[@]}")
  case $dialect in
  leveldb | goleveldb | badger) size=(-n 100 --bits-per-key 10) ask=() ;;
  rocksdb*) size=(-n 100 --bits-per-key 10) ask=("${size[@]}") ;;
  gozero) size=(--bits 4100) ask=("${size[@]}") ;;
  gobloom) ask=(--hashes 6) ;;
  esac
  "$seen" build -q --force --dialect "$dialect" "${size[@]}" -o whole hundred
  (cat whole; echo) >longer
  run "$seen" check -c --dialect "$dialect" "${ask[@]}" longer hundred
  if [ "$code" -eq 2 ]; then
    expect_failure "longer: as $dialect: is one byte longer than the filter, a newline, which redis-cli appends: take it off, for example redis-cli --raw GET KEY | head -c -1"
  else
    expect; [ "$out" = 100 ] || [[ $err == *"warning: longer: ends in a newline, which counts as a byte of the $dialect filter"* ]] ||
      wrong "keys of $dialect are gone, without a word"
  fi
  head -c -1 longer | cmp -s - whole || wrong "head -c -1"
  run "$seen" check -c --dialect "$dialect" "${ask[@]}" whole hundred; expect_out 100; expect_silent
done
finish
