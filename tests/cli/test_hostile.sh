#!/usr/bin/env bash
# test_hostile.sh - arguments and lines that nobody means well: the verbs on filters
# end with 0, 1 or 2, never by a signal, say what is wrong, and change no file that
# was not named.
#
#   test_hostile.sh SEEN [RUNS]    1400 runs by default, more with SEEN_TEST_SCALE
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
runs=${2:-$((1050 + 350 * ${SEEN_TEST_SCALE:-1}))}
RANDOM=${SEEN_TEST_SEED:-99}
echo "seed ${SEEN_TEST_SEED:-99}"

verbs=(uniq build add check remove info merge verify convert dialects plan help)
files=(f g cuckoo 'set' window bitmap guava lines noise empty 'a name' new out)
long=$(head -c 120000 /dev/zero | tr '\0' 'a')
values=('' - -- 0 -1 1 3 100 nan inf -0 0.5 1e-300 1e300 1k 10% 9223372036854775808 18446744073709551615
  18446744073709551616 -9223372036854775808 0x10 %s%n%s "$long" $'\t' $'\n' $'\xff\xfe' /dev/null
  /dev/zero/x . .. / ./f f/ bloom blocked cuckoo 'set' ribbon sorted scalable window bitmap guava leveldb
  gozero redisbloom nonsense hour 1ms 30d n=1 items=5 uniq 'users=1,items=1' '=' ',' '*')
options=(-n -p -q -v -c -o -f -t -j -0 -i -z -h --kind --state --bits --hashes --hex --u64 --u64=binary --crlf --json --ack
  --batch --dialect --to --from --key --secret --keyed --last --generations --window --max-memory
  --allow --never --always --progress --plot --fleet --nonsense --n= -p= -n1 -p0.5 -j0 -j99999 -o= --help --)
inputs=(/dev/null ../kept/lines ../kept/noise ../kept/wide)

mkdir kept box
seq 500 >kept/lines
head -c 3000 /dev/urandom >kept/noise
printf '%s\n\0\0\n\xff\n\n' "$long" >kept/wide
: >kept/empty
cp kept/lines 'kept/a name'
cd kept || exit 2
"$seen" build -q -o f lines
"$seen" build -q -p 1e-6 -o g lines
"$seen" build -q --kind cuckoo -o cuckoo lines
"$seen" build -q --kind set -o set lines
"$seen" build -q --kind bitmap --bits 1000 -o bitmap --u64 lines
"$seen" build -q --last 1000 -o window lines
"$seen" build -q --dialect guava -o guava lines
cd .. || exit 2
last="the filters"
for f in f g cuckoo 'set' bitmap window guava; do expect_file kept/$f; done
cksum kept/* >sums
cd box || exit 2

# Whatever a filter of unheard-of size would do to this machine.
trap '' XFSZ # a file that is too large is an error, not a signal
ulimit -f 200000
ulimit -t 60

# What is there, and when it was changed.
picture() { stat -c '%n/%s/%z/%i' -- * 2>/dev/null; }

# named FILE: is it one of the arguments, in whatever form, or beside one that is?
named() {
  local argument file=${1%%.journal-*}
  for argument in "${arguments[@]}"; do
    [[ $argument == *"${file%%.seen-new*}"* ]] && return
  done
  return 1
}

for i in $(seq "$runs"); do
  if [ $((i % 50)) -eq 1 ]; then
    rm -rf ./* && cp -p ../kept/* .
  fi
  arguments=("${verbs[RANDOM % ${#verbs[@]}]}")
  n=$((RANDOM % 6))
  while [ "${#arguments[@]}" -le $n ]; do
    case $((RANDOM % 3)) in
      0) arguments+=("${options[RANDOM % ${#options[@]}]}") ;;
      1) arguments+=("${values[RANDOM % ${#values[@]}]}") ;;
      2) arguments+=("${files[RANDOM % ${#files[@]}]}") ;;
    esac
  done
  before=$(picture)
  "$seen" "${arguments[@]}" >../.out 2>../.err <"${inputs[RANDOM % ${#inputs[@]}]}"
  code=$? last="run $i: ${arguments[*]}" out=''
  { err=$(<../.err); } 2>/dev/null # a shell's variables hold no NUL
  [ "${arguments[0]}" = verify ] && [ -z "$err" ] && err="seen verify: $(<../.out)" # its result
  expect; [ "$code" -le 2 ] || wrong "expected 0, 1 or 2"
  expect; [ "$code" -lt 2 ] || [[ $err == "seen"*": "?* ]] || wrong "an error without a word"
  expect; [[ $err != *Sanitizer* && $err != *"runtime error"* ]] || wrong "a sanitizer's complaint"
  after=$(picture)
  [ "$before" = "$after" ] && continue
  while IFS=/ read -r file _; do
    expect; named "$file" || wrong "$file was not named, and has changed"
  done < <(comm -3 <(sort <<<"$before") <(sort <<<"$after") | tr -d '\t')
done
cd .. || exit 2
last=sums; expect; cksum kept/* | cmp -s - sums || wrong "files in another directory have changed"
expect_no_file box/kept

tried "$runs" "argument lists"
finish
