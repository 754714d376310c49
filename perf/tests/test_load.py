import os
import socket
import tempfile
import threading
import unittest

from perf.bench import load, procs
from perf.bench.cells import p3

SIDE = {"requests": 10, "errors": {"connect": 0, "read": 0, "write": 0, "status": 0, "timeout": 0}}


class Parse(unittest.TestCase):
    def test_the_json_line_among_wrk_output(self):
        text = 'Running 3s test\n\nBENCH {"requests":5,"seconds":1.0,"p50_us":1,"p99_us":2,"max_us":3,"errors":{"status":1}}\nRequests/sec: 5'
        self.assertEqual(load.parse(text)["requests"], 5)

    def test_no_line_is_an_error_not_a_zero(self):
        with self.assertRaises(RuntimeError):
            load.parse("unable to connect")

    def test_micro_output(self):
        text = '{"figures": [{"name": "memory_50000", "unit": "bytes", "median": 2e6, "min": 1e6, "max": 3e6, "n": 1}]}'
        self.assertEqual(p3.parse(text)["memory_50000_mb"], {"median": 2.0, "min": 1.0, "max": 3.0, "n": 1})


class Failed(unittest.TestCase):
    def test_any_error_on_any_side(self):
        self.assertFalse(load.failed({"a": SIDE, "b": SIDE}))
        self.assertTrue(load.failed({"a": SIDE, "b": dict(SIDE, requests=0)}))
        self.assertTrue(load.failed({"a": dict(SIDE, errors=dict(SIDE["errors"], status=1)), "b": SIDE}))


class Requests(unittest.TestCase):
    def test_raw_requests_survive_the_file(self):
        request = load.get("/x", {"A": "b"})
        self.assertEqual(request, b"GET /x HTTP/1.1\r\nHost: 127.0.0.1\r\nA: b\r\n\r\n")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "requests")
            load.write_requests(path, [request, request])
            with open(path, "rb") as f:
                self.assertEqual(f.read(), (request + b"%%\n") * 2)

    def test_once_sees_status_and_body(self):
        listener = socket.create_server(("127.0.0.1", 0))

        def serve():
            peer, _ = listener.accept()
            peer.recv(4096)
            peer.sendall(b"HTTP/1.1 401 Unauthorized\r\n\r\nno")
            peer.close()

        thread = threading.Thread(target=serve)
        thread.start()
        self.assertEqual(load.once(listener.getsockname()[1], load.get("/", {})), (401, b"HTTP/1.1 401 Unauthorized\r\n\r\nno"))
        thread.join()
        listener.close()


class Processes(unittest.TestCase):
    def test_a_program_that_ends_is_no_server(self):
        with tempfile.TemporaryDirectory() as folder:
            server = procs.Server("false", ["sh", "-c", "echo no >&2; exit 1"], procs.free_port(), os.path.join(folder, "log"))
            with self.assertRaisesRegex(RuntimeError, "no"):
                server.__enter__()

    def test_own_cpu_time_grows(self):
        before = procs.cpu_ns(os.getpid())
        sum(i * i for i in range(300000))
        self.assertGreater(procs.cpu_ns(os.getpid()), before)
        self.assertGreater(procs.memory_kb(os.getpid()), 1000)
