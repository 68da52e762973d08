# shellcheck shell=bash disable=SC2154 # SOURCE, PORT, SEEN_MODULE: test_docs.py's
# What README.md and README.zh-CN.md take for granted.

# The reader's own programs.
rank() { seq -f "post-%.0f" 1 40; }
fetch() { printf '%s\n' first second first; }
producer() { printf '%s\n' one two three; }
tail() { printf 'a,1\nb,1\nc,2\n'; } # -f would not end

# A server runs until it is told to stop; the test has one. And eight gigabytes
# for a thousand lines would only try the machine.
seen() {
  if [ "$1" = server ]; then
    printf 'at port %s\n' "$PORT"
  else # and nobody waits for a benchmark of ten million keys
    local args=("${@/#2e9/2e6}")
    [ "$1" != bench ] || args=(bench -n 10000 --kind blocked)
    command seen "${args[@]}"
  fi
}

seq -f "GET /%.0f" 1 100 >access.log
seq -f "http://host/%.0f" 1 1000 | gzip >urls-1.gz
printf '%s\n' evil worse >banned.txt
printf '%s\n' good evil >requests.txt
printf 'alice\tpost-1\nalice\tpost-2\nbob\tpost-1\n' >candidates.tsv
rank >keys
seen build --dialect leveldb --bits-per-key 10 -o block keys
