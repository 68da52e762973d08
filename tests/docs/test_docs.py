#!/usr/bin/env python3
"""test_docs.py DOCUMENT SEEN MODULE LIBRARIES - what a document shows, is done.

Blocks fenced as `console` are run, from top to bottom, in one directory:

    $ COMMAND       in bash, with ours as `seen`
    > COMMAND       in redis-cli, of a server with the module
    anything else   what the line before must print; nothing: it is not compared

Blocks fenced as `c` are programs: compiled, linked, run. A command may end with 1
(no match, as grep says it), not with 2. In a line of expected output `...` stands
for anything. What a document takes for granted (files, the reader's own programs)
is made by NAME.sh beside this file.
"""
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "server"))
from lib import Server

document, seen, module, libraries = [os.path.realpath(a) for a in sys.argv[1:5]]
here = os.path.dirname(os.path.abspath(__file__))
source = os.path.dirname(os.path.dirname(here))
failed = tried = 0


def blocks(text):
    """(language, line number, lines) of each fenced block."""
    language = None
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            if language is None:
                language, start, inside = line[3:].strip(), number + 1, []
            else:
                yield language, start, inside
                language = None
        elif language is not None:
            inside.append(line)


def steps(start, lines):
    """(line number, prompt, command, expected lines) of a console block."""
    found = []
    for number, line in enumerate(lines, start):
        if line[:2] in ("$ ", "> "):
            found.append((number, line[0], line[2:], []))
        elif found and found[-1][2].endswith("\\"):
            found[-1] = found[-1][:2] + (found[-1][2][:-1] + line,) + found[-1][3:]
        elif found:
            found[-1][3].append(line)
        else:
            wrong(number, "a console block starts with a command")
    return found


def wrong(number, what, output=""):
    global failed
    failed += 1
    print("%s:%d: %s" % (os.path.basename(document), number, what))
    for line in output.rstrip("\n").split("\n")[:12]:
        print("    | " + line)


def alike(expected, output):
    pattern = "\n".join(re.escape(line.rstrip()).replace(r"\.\.\.", ".*") for line in expected)
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in output.rstrip("\n").split("\n")))


class Shell:
    """One bash for the whole document, so that what it sets stays."""

    def __init__(self, directory, port):
        path = os.path.dirname(seen) + ":" + os.environ["PATH"]
        self.bash = subprocess.Popen(
            ["bash"], cwd=directory, text=True, errors="replace", stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            env=dict(os.environ, PATH=path, PORT=str(port), SOURCE=source,
                     SEEN_MODULE=module))
        prelude = os.path.join(here, os.path.basename(document).split(".")[0] + ".sh")
        if os.path.exists(prelude):
            code, output = self.run(open(prelude).read())
            if code != 0:
                wrong(0, "%s ends with %d" % (prelude, code), output)

    def run(self, command):
        self.bash.stdin.write("{ %s\n} </dev/null\nprintf '\\n:%%d:end\\n' $?\n" % command)
        self.bash.stdin.flush()
        output = ""
        for line in self.bash.stdout:
            end = re.fullmatch(r":(\d+):end\n", line)
            if end:
                return int(end.group(1)), output[:-1]
            output += line
        return 255, output


def console(shell, server, start, lines):
    global tried
    for number, prompt, command, expected in steps(start, lines):
        tried += 1
        while expected and not expected[-1].strip():
            expected.pop()
        if prompt == ">":
            command = "redis-cli -p %d %s" % (server.port, command)
        code, output = shell.run(command)
        if code > 1:
            wrong(number, "ends with %d: %s" % (code, command), output)
        elif prompt == ">" and re.match(r"(ERR|WRONGTYPE|\(error\))", output):
            wrong(number, "an error: %s" % command, output)
        elif expected and not alike(expected, output):
            wrong(number, "prints something else: %s" % command, output)


def program(directory, number, lines):
    global tried
    leveldb = []
    if "#include <seen_leveldb.h>" in lines:
        leveldb = [os.path.join(libraries, "libseen_leveldb.a"), "-lleveldb"]
        if not os.path.exists(leveldb[0]):
            print("%s:%d: left out: built without LevelDB" % (os.path.basename(document), number))
            return
    tried += 1
    path = os.path.join(directory, "block%d" % number)
    with open(path + ".c", "w") as f:
        f.write("\n".join(lines))
    build = ["cc", "-std=c17", "-Wall", "-Wextra", "-Werror", "-I", os.path.join(source, "include"),
             "-o", path, path + ".c", *leveldb, os.path.join(libraries, "libseen_remote.a"),
             os.path.join(libraries, "libseen_store.a"),
             os.path.join(libraries, "libseen.a"), "-llmdb", "-lhiredis", "-lm", "-pthread"]
    for command in (build, [path]):
        done = subprocess.run(command, cwd=directory, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode != 0:
            wrong(number, "ends with %d: %s" % (done.returncode, command[0]), done.stdout)
            return


def main():
    text = open(document, encoding="utf-8").read()
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"    ([$>] |seen |redis-)", line):
            wrong(number, "a command that is not in a console block, so nobody runs it: " + line)
    with tempfile.TemporaryDirectory(prefix="seen-docs-") as directory, \
            Server(module) as server:
        shell = Shell(directory, server.port)
        for language, start, lines in blocks(text):
            if language == "console":
                console(shell, server, start, lines)
            elif language == "c":
                program(directory, start, lines)
        shell.bash.stdin.close()
        shell.bash.wait()
    print("%d commands and programs, %d failed" % (tried, failed))
    return failed != 0


sys.exit(main())
