# shellcheck shell=bash disable=SC1091
# What README.md and README.zh-CN.md take for granted.
source "$SOURCE/tests/docs/common.sh"

seq -f "GET /%.0f" 1 100 >access.log
seq -f "http://host/%.0f" 1 1000 | gzip >urls-1.gz
printf '%s\n' evil worse >banned.txt
printf '%s\n' good evil >requests.txt
printf 'alice\tpost-1\nalice\tpost-2\nbob\tpost-1\n' >candidates.tsv
printf 'alice\tpost-5\nbob\tpost-6\n' >events.tsv
rank >keys.txt
rank >posts.txt
seq -f "new-%.0f" 1 40 >more.txt
seen build --dialect leveldb --bits-per-key 10 -o filter.block keys.txt
