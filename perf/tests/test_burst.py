import os
import socket
import threading
import unittest

from perf.bench import burst, load, procs
from perf.bench.cells import burst as burst_cell
from perf.bench.cells import opaque, p4, p9, p11

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NO = b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n"


class Answering:
    """Answers each request of each connection by answer(request), in threads; None ends the connection."""

    def __init__(self, answer):
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()
        except OSError:
            pass

    def serve(self, peer):
        with peer:
            while request := peer.recv(65536):
                said = self.answer(request)
                if said is None:
                    return
                for at in range(0, len(said), 7):  # in pieces
                    peer.sendall(said[at:at + 7])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


class Status(unittest.TestCase):
    def test_only_a_whole_answer_has_one(self):
        for n in range(len(OK)):
            self.assertIsNone(burst.status(OK[:n]))
        self.assertEqual(burst.status(OK), 200)
        self.assertEqual(burst.status(NO), 401)


class Client(unittest.TestCase):
    def test_every_request_once_over_few_connections(self):
        with Answering(lambda request: OK) as server, burst.Client(server.port, 3) as client:
            run = client.run([load.get(f"/{i}", {}) for i in range(10)])
            again = client.run([load.get("/", {})], spin=True)
        self.assertEqual((run["requests"], run["good"], run["statuses"]), (10, 10, {"200": 10}))
        self.assertTrue(burst.whole(run) and burst.whole(again))
        self.assertGreaterEqual(run["seconds"] * 1e3, run["worst_ms"])
        self.assertGreaterEqual(run["worst_ms"], run["median_ms"])

    def test_refusals_and_lost_connections_are_counted(self):
        answers = {b"/a": OK, b"/b": NO, b"/c": None}
        with Answering(lambda request: answers[request.split(b" ")[1]]) as server, burst.Client(server.port, 3) as client:
            run = client.run([load.get(path, {}) for path in ("/a", "/b", "/c")])
        self.assertEqual(run["statuses"], {"200": 1, "401": 1, "0": 1})
        self.assertFalse(burst.whole(run))

    def test_silence_ends(self):
        with Answering(lambda request: b"HTTP/1.1 200") as server, burst.Client(server.port, 1) as client:
            run = client.run([load.get("/", {})], limit=0.1)
        self.assertEqual((run["good"], run["worst_ms"]), (0, None))


class Placement(unittest.TestCase):
    def test_the_generator_leaves_its_cpu_again(self):
        before = os.sched_getaffinity(0)
        with procs.staying_on(procs.cpus()[1]):
            self.assertEqual(len(os.sched_getaffinity(0)), 1)
        self.assertEqual(os.sched_getaffinity(0), before)

    def test_threads_and_memory_of_a_process(self):
        self.assertIn(os.getpid(), procs.threads(os.getpid()))
        resident, anonymous = procs.exact_kb(os.getpid())
        self.assertGreater(resident, anonymous)
        self.assertGreater(anonymous, 0)


def burst_of(calls, good=100, seconds=0.06):
    return {"requests": 100, "good": good, "calls": calls, "workers": 2, "seconds": seconds, "worst_ms": 60.0, "median_ms": 55.0,
            "cpu_us": 9.0}


class Figures(unittest.TestCase):
    def test_p4_is_decided_by_the_worst_burst(self):
        figures = p4.figures([burst_of(1)] * 9 + [burst_of(2, good=99)])
        self.assertEqual((figures["calls"]["median"], figures["calls_most"]["median"], figures["unanswered"]["median"]), (1, 2, 1))

    def test_p4_counts_workers_that_did_more_than_tick(self):
        before = {1: ("subzero", 5), 2: ("worker-0", 5), 3: ("worker-1", 5)}
        after = {1: ("subzero", 10**9), 2: ("worker-0", 10**6), 3: ("worker-1", 6), 4: ("worker-2", 10**6)}
        self.assertEqual(p4.busy(before, after), 2)

    def test_a_burst_with_a_refusal_gives_no_time(self):
        figures = burst_cell.figures([burst_of(100, good=99, seconds=0.01), burst_of(100, seconds=0.08)])
        self.assertEqual((figures["wall_ms"]["median"], figures["first_ms"], figures["unanswered"]["median"]), (80.0, None, 1))

    def test_p11_is_beyond_a_hit(self):
        passes = {"new": {"cpu_us": 40.0}, "hit": {"cpu_us": 10.0}, "micro": {"bare_us": 20.0, "full_us": 22.0}}
        self.assertEqual(p11.figures("rs256", [passes])["rs256_of_bare"]["median"], 1.5)
        self.assertIsNone(p11.figures("rs256", [])["rs256_of_bare"])

    def test_an_introspection_counts_only_with_its_call(self):
        side = {"requests": opaque.TOKENS, "good": opaque.TOKENS, "cpu_us": 30.0, "seconds": 1.0}
        values = {"miss": dict(side, cpu_us=70.0), "hit": side, "calls": [opaque.TOKENS, 0],
                  "micro": opaque.parse('{"bare":{"cpu_us":20,"calls_per_s":9},"one":{"cpu_us":21},'
                                        '"many":{"cpu_us":10,"calls_per_s":9}}')}
        self.assertTrue(opaque.good(values))
        self.assertFalse(opaque.good(dict(values, calls=[opaque.TOKENS, 3])))
        self.assertFalse(opaque.good(dict(values, calls=[opaque.TOKENS - 1, 0])))
        figures = opaque.figures([values])
        self.assertEqual((figures["cpu_of_bare"]["median"], figures["cpu_of_client"]["median"]), (2.0, 4.0))


class Chunked(unittest.TestCase):
    def answer(self, chunks):
        return (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" +
                b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n")

    def read(self, answer, middle=None):
        near, far = socket.socketpair()
        reader = p9.Reader.__new__(p9.Reader)
        reader.sock, reader.buffer = near, bytearray(1 << 18)

        def serve():
            far.recv(4096)
            far.sendall(answer)
            far.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            return reader.read(b"GET / HTTP/1.1\r\n\r\n", middle)
        finally:
            thread.join()
            near.close()

    def test_whole_short_and_cut(self):
        body = [b"x" * p9.CHUNK] * (p9.BODY // p9.CHUNK)
        halfway = []
        self.assertTrue(self.read(self.answer(body), lambda: halfway.append(1)))
        self.assertEqual(halfway, [1])
        self.assertFalse(self.read(self.answer(body[:-1])))
        self.assertFalse(self.read(self.answer(body)[:-3]))
        self.assertFalse(self.read(self.answer(body).replace(b"200 OK", b"502 No", 1)))
