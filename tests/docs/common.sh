# shellcheck shell=bash disable=SC2154,SC2034 # PORT, SOURCE: test_docs.py's
# What documents take for granted: the reader's own programs, and a server.

rank() { seq -f "post-%.0f" 1 40; }
fetch() { printf '%s\n' first second first; }
producer() { printf '%s\n' one two three; }
tail() { printf 'a,1\nb,1\nc,2\n'; } # -f would not end

# A server runs until it is told to stop; the test has one already, wherever a
# document says it is. And gigabytes for a thousand lines, or minutes of measuring,
# would only try the machine.
seen() {
  if [ "$1" = server ]; then
    printf 'at port %s\n' "$PORT"
    return
  fi
  local args=("${@/#2e9/2e6}")
  args=("${args[@]/cache:6379/127.0.0.1:$PORT}")
  args=("${args[@]/127.0.0.1:7000/127.0.0.1:$PORT}")
  [ "$1" != bench ] || args=(bench -n 10000 --kind blocked)
  command seen "${args[@]}"
}
redis-server() { printf 'at port %s\n' "$PORT"; }
redis-cli() { command redis-cli -p "$PORT" "$@"; }
