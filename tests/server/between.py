"""Who stands between a client and a server, and can say something of his own.

    with Between(server.port, rule) as between:
        ... clients connect to between.port ...

rule(arguments) sees each command before the server does, as a list of bytes; the next one
comes when this one has its reply. It gives None (go on), or the reply, which the server
then does not make: bytes, CLOSE, or several of these, one after the other (an iterator may
take its time).
"""
import socket
import threading

CLOSE = object()


def command_in(f):
    """The next one, [] at the end."""
    line = f.readline()
    args = []
    for _ in range(int(line[1:]) if line else 0):
        size = int(f.readline()[1:])
        args.append(f.read(size + 2)[:-2])
    return args


def reply_in(f):
    """One reply, as it came; b"" at the end."""
    line = f.readline()
    out = [line]
    if line[:1] == b"$" and line != b"$-1\r\n":
        out.append(f.read(int(line[1:]) + 2))
    elif line[:1] == b"*":
        out += [reply_in(f) for _ in range(max(0, int(line[1:])))]
    return b"".join(out)


class Between:
    def __init__(self, port, rule):
        self.to, self.rule, self.open = port, rule, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.listen, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.shut([self.listener] + self.open)
        for s in [self.listener] + self.open:
            s.close()

    @staticmethod
    def shut(sockets):
        for s in sockets:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def listen(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            self.open += [client, server]
            threading.Thread(target=self.talk, args=(client, server), daemon=True).start()

    @staticmethod
    def commands_of(client):
        return client.makefile("rb")

    def talk(self, client, server):
        try:
            with self.commands_of(client) as commands, server.makefile("rb") as replies:
                while args := command_in(commands):
                    answer = self.rule(args)
                    if answer is None:
                        server.sendall(b"*%d\r\n" % len(args) + b"".join(
                            b"$%d\r\n%s\r\n" % (len(a), a) for a in args))
                        answer = reply_in(replies) or CLOSE
                    for piece in [answer] if answer is CLOSE or isinstance(answer, bytes) \
                            else answer:
                        if piece is CLOSE:
                            return
                        client.sendall(piece)
        except (OSError, ValueError):
            pass
        finally:
            self.shut([client, server])
