#!/usr/bin/env bash
# test_users_hostile.sh - arguments and lines that nobody means well: the verbs of
# stores end with 0 or 2, never by a signal, and the store stays whole.
#
#   test_users_hostile.sh SEEN [RUNS]    600 runs by default, more with SEEN_TEST_SCALE
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
runs=${2:-$((450 + 150 * ${SEEN_TEST_SCALE:-1}))}
RANDOM=${SEEN_TEST_SEED:-99}
echo "seed ${SEEN_TEST_SEED:-99}"

# Whatever happens to those who are named: nobody names this user, whose items do not
# age out either (no policy is that short, and sweep is not told another time).
seq -f 'bystander	item %.0f' 200 >bystander
"$seen" mark -q feed <bystander
"$seen" mark -q feed victim kept
long=$(head -c 120000 /dev/zero | tr '\0' 'a')
verbs=(mark fresh take forget info sweep backup)
values=('' - -- 0 -1 1 nan inf 1e-300 1e300 9223372036854775808 18446744073709551615 18446744073709551616
  0x10 %s%n%s "$long" $'\t' $'\n' $'\xff\xfe' /dev/null /dev/zero/x feed lmdb:feed lmdb: mem: mem:x
  redis:// feed/ ./feed 'feed feed' items=1 'items=1,items=1' 'ttl=90d,generations=64' fpp=1e-9 '=' ',' '=,=' items=99999999999
  victim kept batch none events)
options=(-n -q -0 -i -f -t --hex --u64 --crlf --json --tail --at --also --policy --sync --secret-file --batch --ack --user
  --nonsense -z --at= --policy= -n1 -n0 --)
printf 'u\ti\nv\tj\nv\tj\n' >good
printf 'u\n' >plain
head -c 3000 /dev/urandom >noise
printf '\0\0\t\0' >nul
printf 'u\t%s\n' "$long" >wide
inputs=(/dev/null good plain noise nul wide)

for i in $(seq "$runs"); do
  arguments=("${verbs[RANDOM % ${#verbs[@]}]}")
  [ $((RANDOM % 3)) -gt 0 ] && arguments+=(feed)
  for _ in $(seq $((RANDOM % 5))); do
    if [ $((RANDOM % 2)) -eq 0 ]; then
      arguments+=("${options[RANDOM % ${#options[@]}]}")
    else
      arguments+=("${values[RANDOM % ${#values[@]}]}")
    fi
  done
  [[ "${arguments[0]} ${arguments[*]}" == "sweep "*--at* ]] && continue
  "$seen" "${arguments[@]}" >.out 2>.err <"${inputs[RANDOM % ${#inputs[@]}]}"
  code=$? last="run $i: ${arguments[*]}"
  out='' err=$(head -c 300 .err)
  expect; [ "$code" -eq 0 ] || [ "$code" -eq 2 ] || wrong "expected 0 or 2"
  expect; [ "$code" -eq 0 ] || [ -s .err ] || wrong "an error without a word"
done
run "$seen" info feed; expect_code 0
run bash -c "echo other | '$seen' fresh feed victim"; expect_out other
run bash -c "'$seen' fresh feed <bystander"; expect_code 0; expect_out ''
run bash -c "echo 'bystander	another' | '$seen' fresh feed"; expect_out 'bystander	another'

tried "$runs" "argument lists"
finish
