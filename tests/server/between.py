"""Who stands between a client and a server, and can say something of his own.

    with Between(server.port, rule) as between:
        ... clients connect to between.port ...

rule(arguments) sees each command before the server does, as a list of bytes. It gives
None (go on), bytes (the reply, which the server then does not make) or CLOSE.
"""
import socket
import threading

CLOSE = object()


class Between:
    def __init__(self, port, rule):
        self.to, self.rule, self.open = port, rule, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.listen, daemon=True).start()
        return self

    def __exit__(self, *error):
        for s in [self.listener] + self.open:
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()

    def listen(self):
        while True:
            try:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                return
            self.open += [client, server]
            threading.Thread(target=self.forth, args=(client, server), daemon=True).start()
            threading.Thread(target=self.back, args=(server, client), daemon=True).start()

    @staticmethod
    def back(server, client):
        try:
            while data := server.recv(1 << 16):
                client.sendall(data)
        except OSError:
            pass

    def forth(self, client, server):
        try:
            with client.makefile("rb") as lines:
                while line := lines.readline():
                    args = []
                    for _ in range(int(line[1:])):
                        size = int(lines.readline()[1:])
                        args.append(lines.read(size + 2)[:-2])
                    answer = self.rule(args)
                    if answer is CLOSE:
                        break
                    if answer is not None:
                        client.sendall(answer)
                        continue
                    server.sendall(b"*%d\r\n" % len(args) + b"".join(
                        b"$%d\r\n%s\r\n" % (len(a), a) for a in args))
        except OSError:
            pass
        for s in (client, server):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
