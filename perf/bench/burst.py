"""A client that sends given requests once each, over kept connections: for what wrk, which goes round, cannot show.

One thread and one poll; each connection has one request under way.  The answers must have a Content-Length.
"""

import collections
import selectors
import socket
import time

from perf.bench import procs


class Connection:
    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), 10)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.setblocking(False)
        self.answer = b""
        self.started = 0.0

    def send(self, request):
        self.answer, self.started = b"", time.monotonic()
        self.sock.sendall(request)

    def read(self):
        """The status of a whole answer, None while there is more to come, 0 when the connection is over."""
        try:
            chunk = self.sock.recv(65536)
        except BlockingIOError:
            return None
        except OSError:
            return 0
        self.answer += chunk
        return status(self.answer) if chunk else 0


def status(answer):
    """The status of an answer that is there as a whole; None when it is not."""
    head, end, body = answer.partition(b"\r\n\r\n")
    if not end:
        return None
    length = 0
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            length = int(value)
    return int(head.split(b" ", 2)[1]) if len(body) >= length else None


class Client:
    """`connections` kept ones; a context manager."""

    def __init__(self, port, connections):
        self.port, self.connections = port, connections
        self.held, self.times_ms = [], []

    def __enter__(self):
        try:
            while len(self.held) < self.connections:
                self.held.append(Connection(self.port))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for connection in self.held:
            connection.sock.close()
        self.held = []

    def run(self, requests, limit=60.0, spin=False):
        """Sends all of them, on the generator's CPU; {"requests", "good", "statuses", "seconds", "worst_ms", "median_ms"},
        seconds from the first byte sent to the last answer.  spin: never asleep, so that no answer pays for waking it."""
        with procs.staying_on(procs.cpus()[1]):
            return self.exchange(requests, limit, 0 if spin else 1)

    def exchange(self, requests, limit, nap):
        waiting = collections.deque(requests)
        statuses, times = collections.Counter(), []
        start = time.monotonic()
        with selectors.DefaultSelector() as poll:
            for connection in self.held[: len(waiting)]:
                poll.register(connection.sock, selectors.EVENT_READ, connection)
                connection.send(waiting.popleft())
            under_way = min(len(requests), len(self.held))
            while under_way and time.monotonic() - start < limit:
                for key, _ in poll.select(nap):
                    got = key.data.read()
                    if got is None:
                        continue
                    times.append(time.monotonic() - key.data.started)
                    statuses[got] += 1
                    if got and waiting:
                        key.data.send(waiting.popleft())
                    else:
                        poll.unregister(key.data.sock)
                        under_way -= 1
        end = time.monotonic()
        times.sort()
        self.times_ms = [round(took * 1e3, 3) for took in times]  # of the last run, whole
        return {"requests": len(requests), "good": statuses[200], "statuses": {str(k): n for k, n in statuses.items()},
                "seconds": end - start, "worst_ms": times[-1] * 1e3 if times else None,
                "median_ms": times[len(times) // 2] * 1e3 if times else None}


def whole(run):
    """Every request was answered with 200: what failed is no measurement."""
    return run["good"] == run["requests"]
