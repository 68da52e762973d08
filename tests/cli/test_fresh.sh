#!/usr/bin/env bash
# test_fresh.sh - seen fresh, seen take: candidates that a user has not been
# shown.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

"$seen" mark -q feed alice b d f
printf '%s\n' a b c d e f g >candidates

# ---- Fresh ------------------------------------------------------------------

run "$seen" fresh feed alice candidates; expect_code 0; expect_silent; expect_out $'a\nc\ne\ng'
run "$seen" fresh lmdb:feed alice candidates; expect_out $'a\nc\ne\ng'
run "$seen" fresh feed alice -n 2 candidates; expect_out $'a\nc'
run "$seen" fresh feed alice -n 100 candidates; expect_out $'a\nc\ne\ng'
input=candidates
run "$seen" fresh feed alice; expect_out $'a\nc\ne\ng'
run "$seen" fresh feed alice -; expect_out $'a\nc\ne\ng'
run "$seen" fresh -n1 feed alice; expect_out a
run "$seen" fresh feed nobody; expect_out "$(cat candidates)"
unset input
run "$seen" fresh feed alice candidates; expect_out $'a\nc\ne\ng' # nothing has changed
run "$seen" fresh feed alice /dev/null; expect_code 0; expect_out ''
run "$seen" fresh --json feed alice candidates; expect_out $'a\nc\ne\ng'
for pair in 'store "feed"' 'requests 1' 'candidates 7' 'fresh 4' 'damaged 0'; do
  expect_json "${pair%% *}" "${pair#* }" err
done
# Twice is once, also when far apart and in another dress.
run bash -c "printf '%s\n' a b a c a | '$seen' fresh feed alice"; expect_out $'a\nc'
run bash -c "{ echo first; seq 200000; echo first; } | '$seen' fresh feed nobody | grep -c first"; expect_out 1
run bash -c "printf '%s\n' Ab aB ab | '$seen' fresh -i feed nobody"; expect_out Ab
run bash -c "printf '%s\n' 6a 6A 61 - 62 - | '$seen' fresh --hex feed alice"; expect_out $'6a\n61\n-'
run bash -c "printf '%s\n' 007 7 07 8 | '$seen' fresh --u64 feed alice"; expect_out $'007\n8'
run bash -c "printf 'a\0b\0new\nline\0' | '$seen' fresh -0 feed alice | od -c | head -n 1"
expect_out '0000000   a  \0   n   e   w  \n   l   i   n   e  \0'
run bash -c "printf 'x\n\ny\n\n' | '$seen' fresh feed alice"; expect_out $'x\n\ny'
run bash -c "printf 'x,1\ny,1\nx,2\n' | '$seen' fresh -f 1 -t , feed alice"; expect_out $'x,1\ny,1'
run bash -c "printf a | '$seen' fresh feed alice | od -c | head -n 1"; expect_out '0000000   a  \n'
gzip -k candidates; run "$seen" fresh feed alice candidates.gz; expect_out $'a\nc\ne\ng'

# ---- Take -------------------------------------------------------------------

cp -r feed copy
run "$seen" take feed alice -n 2 candidates; expect_code 0; expect_silent; expect_out $'a\nc'
run "$seen" take feed alice -n 2 candidates; expect_out $'e\ng'
run "$seen" take feed alice -n 2 candidates; expect_code 0; expect_out ''
run "$seen" fresh feed alice candidates; expect_out ''
run "$seen" take --json copy alice -n 3 candidates; expect_out $'a\nc\ne'
for pair in 'requests 1' 'candidates 7' 'taken 3'; do expect_json "${pair%% *}" "${pair#* }" err; done
run bash -c "printf '%s\n' x x y | '$seen' take new bob -n 9"; expect_code 0; expect_out $'x\ny'
run "$seen" take other bob -n 1 --policy items=10,ttl=1h candidates; expect_out a
run "$seen" info other; expect; grep -q 'items=10,generations=5,fpp=0.001,ttl=1h' .out || wrong "the policy"
run "$seen" take feed alice candidates; expect_failure "-n COUNT is missing"
run "$seen" take feed alice -n 0 candidates; expect_failure "-n 0: expected at least 1"
# A line that is no key: nobody is shown anything.
printf '5\n6\nx\n' >bad
run "$seen" take nums u -n 2 --u64 bad; expect_failure "bad:3: x: expected a decimal number below 2^64"
run "$seen" take -q nums u -n 2 --u64 <(printf '5\n6\n'); expect_out $'5\n6'

# mem: forgets at the end; within a run each user gets a line once.
run bash -c "printf '%s\t%s\n' u a u b u a v a w a u a | '$seen' take mem: -n 5"; expect_out $'u\ta\nu\tb\nv\ta\nw\ta'

# ---- Many users -------------------------------------------------------------

printf '%s\t%s\n' ann 1 ann 2 ann 3 bob 1 bob 2 cy 9 ann 1 ann 4 >groups
"$seen" mark -q bulk ann 2
input=groups
run "$seen" fresh bulk; expect_err "lines of a user came after those of others 1 time,"; expect_out "$(printf '%s\t%s\n' ann 1 ann 3 bob 1 bob 2 cy 9 ann 1 ann 4)"
run "$seen" fresh bulk -n 1; expect_out "$(printf '%s\t%s\n' ann 1 bob 1 cy 9 ann 1)"
run "$seen" take bulk -n 1; expect_out "$(printf '%s\t%s\n' ann 1 bob 1 cy 9 ann 4)"
run "$seen" take bulk -n 5 --json; expect_out "$(printf '%s\t%s\n' ann 3 bob 2)"
for pair in 'requests 4' 'requests_again 1' 'candidates 8' 'taken 2'; do expect_json "${pair%% *}" "${pair#* }" err; done
run "$seen" take bulk -n 5; expect_out ''
unset input
# Bulk and single give the same, with groups that are cut by no chunk: 3 MB of
# them, some longer than a chunk.
awk 'BEGIN { srand(3); for (u = 0; u < 60; u++) { n = u % 20 == 7 ? 60000 : 1 + int(rand() * 300)
  for (i = 0; i < n; i++) printf "user-%d\tcandidate-%d\n", u, int(rand() * 500000) } }' >grouped
cut -f 1 grouped | uniq >names
awk -F '\t' 'NR % 3 == 0' grouped >shown
"$seen" mark -q --sync none one <shown; cp -r one two
run "$seen" fresh one <grouped; input=grouped; run "$seen" fresh one; cp .out .fresh; unset input
: >.single; while read -r user; do grep "^$user	" grouped | cut -f 2 | "$seen" fresh one "$user" | sed "s/^/$user	/" >>.single; done <names
expect; cmp -s .fresh .single || wrong "fresh: bulk and single differ"
expect; [ "$(wc -l <.fresh)" -gt 10000 ] || wrong "hardly anything is fresh"
run bash -c "'$seen' take -q one -n 10 <grouped"; cp .out .take
: >.single; while read -r user; do grep "^$user	" grouped | cut -f 2 | "$seen" take -q --sync none two -n 10 "$user" | sed "s/^/$user	/" >>.single; done <names
expect; cmp -s .take .single || wrong "take: bulk and single differ"
run bash -c "'$seen' fresh one -n 10 <.take"; expect_out ''
# The same through a pipe that brings it in small pieces.
run bash -c "dd if=grouped bs=777 2>/dev/null | '$seen' fresh two >.piped; '$seen' fresh two <grouped | cmp - .piped"; expect_code 0
# -0, and users that are prefixes of each other.
run bash -c "printf 'a\tx\0ab\tx\0a\tx\0' | '$seen' fresh -0 bulk | tr '\0' '\n'"; expect_out "$(printf '%s\t%s\n' a x ab x a x)"
# Lines of a user that do not stand together are said, in either verb and across chunks.
printf 'ann\t1\nbob\t1\nann\t2\nbob\t2\nbob\t3\n' >apart
run bash -c "'$seen' take mem: -n 1 <apart"; expect_out "$(head -n 4 apart)"; expect_err "seen take: lines of a user came after those of others 2 times,"
{ cat grouped; head -n 1 grouped; } >apart
run bash -c "'$seen' fresh one <apart >/dev/null"; expect_err "lines of a user came after those of others 1 time"
run bash -c "'$seen' fresh one <grouped >/dev/null"; expect_silent
run bash -c "'$seen' fresh -q one <apart >/dev/null"; expect_silent
# A file where a user is expected is said; items where a file is, too.
printf 'x\n' >posts; run bash -c "'$seen' fresh one posts </dev/null"; expect_code 0; expect_err "posts is taken for a user, though there is such a file"
run "$seen" fresh one alice posts more; expect_failure "more: expected one INPUT, a file of candidates (only seen mark takes items as arguments)"
# Bad lines: the users before them have been dealt with, nobody else.
printf 'ann\t1\nann\t2\nbob\t1\nbob\tx\nbob\t3\n' >bad
input=bad; run "$seen" take nums2 --u64 -n 9; expect_code 2; expect_out $'ann\t1\nann\t2'; expect_err "stdin:4: bob?x: expected a decimal number"
unset input
run bash -c "printf 'ann\t1\nbob\t1\n' | '$seen' take nums2 --u64 -n 9"; expect_out $'bob\t1'
printf 'u1\taa\nu2\tzz\nu3\tcc\n' >bad
input=bad; run "$seen" fresh --hex nums2; expect_code 2; expect_out $'u1\taa'; expect_err "stdin:2: u2?zz: expected hex digits"
run "$seen" take --hex nums2 -n 9; expect_code 2; expect_out $'u1\taa'
run "$seen" take --hex nums2 -n 9; expect_code 2; expect_out ''
printf 'u1\tbb\nu\tzz\nv\tbb\n' >bad; run "$seen" fresh --hex nums2; expect_code 2; expect_out $'u1\tbb'
# A line that names nobody, or somebody with too long a name, is not of the user before it.
for line in bob $'\t1' "$(head -c 512 /dev/zero | tr '\0' u)"$'\t1'; do
  printf 'cid\t1\n%s\ndon\t1\n' "$line" >bad; run "$seen" fresh nums2; expect_code 2; expect_out $'cid\t1'; expect_err "stdin:2: "
done
printf 'ann\t1\nbob\n' >bad; run "$seen" fresh nums2; unset input; expect_code 2; expect_err "stdin:2: bob: expected a user, a tab and an item"

# ---- Two stores -------------------------------------------------------------

"$seen" mark -q main alice a b; "$seen" mark -q extra alice c d; "$seen" mark -q extra bob a
run "$seen" fresh main alice --also extra candidates; expect_out $'e\nf\ng'
run "$seen" fresh main alice --also extra -n 1 candidates; expect_out e
run "$seen" take main alice --also extra -n 2 candidates; expect_out $'e\nf'
run "$seen" fresh extra alice candidates; expect_out $'a\nb\ne\nf\ng' # marks go to the first
run "$seen" fresh main alice candidates; expect_out $'c\nd\ng'
run bash -c "printf '%s\t%s\n' alice c alice g bob a bob b | '$seen' take main --also extra -n 5"; expect_out $'alice\tg\nbob\tb'
run bash -c "printf '%s\n' c c z z | '$seen' fresh main alice --also extra"; expect_out z
run "$seen" fresh main alice --also nowhere candidates; expect_failure "nowhere: no such store"
run "$seen" take unmade alice --also nowhere -n 1 candidates; expect_failure "nowhere: no such store"; expect_no_file unmade
run "$seen" fresh main alice --also redis://x/y candidates; expect_failure "is not the number of a database"
run "$seen" take main alice --also main -n 1 candidates; expect_failure "main: "

# ---- Printed is durable -----------------------------------------------------

# What cannot be printed may be lost, but nothing is printed twice.
run bash -c "seq 1000 | '$seen' take full u -n 1000 >/dev/full"; expect_code 2; expect_err "No space left"
run bash -c "seq 1000 | '$seen' take -q full u -n 1000 | wc -l"; expect_out 0
run bash -c "seq 200000 | '$seen' take closed u -n 200000 --policy items=40000 | head -n 1"; expect_code 0; expect_out 1
run bash -c "'$seen' fresh feed alice candidates >/dev/full"; expect_code 0
run bash -c "echo new | '$seen' fresh feed alice >/dev/full"; expect_code 2; expect_err "No space left"

# ---- Mistakes ---------------------------------------------------------------

for verb in fresh take; do
  run "$seen" $verb -n 1; expect_failure "STORE is missing"
  run "$seen" $verb -n 1 feed ''; expect_failure "USER is empty"
  run "$seen" $verb -n 1 feed "$(head -c 512 /dev/zero | tr '\0' u)"; expect_failure "USER has 512 bytes: expected 1 to 511"
  run "$seen" $verb -n 1 feed alice nowhere; expect_failure "nowhere: no such file"
  run "$seen" $verb -n 1 feed alice candidates more; expect_failure "more: expected one INPUT"
  run "$seen" $verb -n 1 feed alice .; expect_failure ".: is a directory"
  run "$seen" $verb -n 1 redis://host/x alice; expect_failure "is not the number of a database"
  run "$seen" $verb -n 1 --hex -i feed alice; expect_failure "leave out -i"
  run "$seen" $verb -n x feed alice; expect_failure "-n x: expected a count"
  run "$seen" $verb --help; expect_code 0; expect; grep -q -- '--also' .out || wrong "help says nothing of --also"
done
run "$seen" take none alice -n 1 nowhere; expect_failure "nowhere: no such file"; expect_no_file none
run "$seen" fresh none alice candidates; expect_failure "none: no such store"; expect_no_file none
for verb in 'fresh feed alice candidates' 'forget feed alice a' 'info feed --user alice'; do
  # shellcheck disable=SC2086 # words
  run "$seen" $verb --policy ttl=1d; expect_failure "feed: has a policy of its own, which seen mark and seen take change"
done
run "$seen" take feed alice -n 1 candidates --tail; expect_failure "--tail is for the store of --also"
run "$seen" fresh candidates alice; expect_code 2; expect_err "candidates: "

finish
