#!/usr/bin/env bash
# test_progress.sh - status lines on a terminal, and nowhere else (SIGUSR1 is in
# test_uniq.sh). The program is held by its input until the line has come.
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"

cat >hold.py <<'EOF'
"""hold.py TEXT COMMAND... - is there a status line with the text, and none too wide?"""
import fcntl, os, pty, re, struct, subprocess, sys, termios, time

text, command = sys.argv[1], sys.argv[2:]
width = int(os.environ.get("WIDTH", "0"))
ours, theirs = pty.openpty()
fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
keys, to_keys = os.pipe()
os.write(to_keys, b"alice\tx\nalice\ty\nbob\tx\nalice\tx\n")
program = subprocess.Popen(command, stdin=keys, stdout=subprocess.DEVNULL, stderr=theirs)
os.close(theirs)
os.close(keys)
os.set_blocking(ours, False)
said, end = "", time.time() + 60
while not re.search(text, said) and time.time() < end:
    try:
        said += os.read(ours, 65536).decode()
    except (BlockingIOError, OSError):
        time.sleep(0.05)
status = [part for part in re.split("\r\x1b\\[K|\n", said) if " lines" in part and not part.startswith("seen")]
wide = [part for part in status if len(part) >= (width or 80)]
print(f"too wide: {wide}" if wide else "found" if re.search(text, said) else said)
os.close(to_keys)
program.wait(60)
EOF
shown() { run python3 hold.py "$@"; expect_code 0; expect_out found; }

shown '4 lines, 1 repeated, .*/s, [0-9.e-]+ expected to be lost' "$seen" uniq -p 1e-6 -n 1000
shown '4 lines, 1 repeated, .*/s' "$seen" uniq
shown '4 lines, 2 repeated, .*, overfull: rate' "$seen" uniq -f 2 -p 1% -n 1
shown '4 lines, 1 repeated, .*, rate .* so far' "$seen" build -n 100 -o built.seen
shown '4 lines, 1 known, .*, rate .* so far' "$seen" add added.seen -n 100 -p 0.1%
shown '4 lines, 4 .*/s' "$seen" check added.seen
shown '4 lines, ' "$seen" mark store
shown 'lines, ' "$seen" fresh store
shown ', [0-9]+ s' "$seen" verify -

# It fits any terminal from 20 columns on, by leaving out parts from its end.
for width in 20 30 40 60 72 80 200; do
  WIDTH=$width shown '4 lines' "$seen" uniq -p 1e-6 -n 1000
done
WIDTH=40 shown '4 lines, 1 repeated, [^,]*/s' "$seen" uniq -p 1e-6 -n 1000

# Never without a terminal, or with -q on one.
run bash -c "(echo x; sleep 1.2) | '$seen' uniq"; expect_code 0; expect_silent
expect; python3 -c '
import os, pty, sys
status = pty.spawn(["bash", "-c", "(echo x; sleep 1.2) | \"$0\" uniq -q", sys.argv[1]], lambda fd: os.read(fd, 4096))
' "$seen" | grep -q lines && wrong "-q shows no progress"
finish
