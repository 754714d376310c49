"""Streaming: 64 proxied responses of 1 MiB in chunks of 16 KiB, one at a time, against unguarded proxies.

Wall time and CPU come from interleaved passes, each with a fresh gateway and two warm-ups a side; memory from a pass of its own,
looked at in the middle of responses, since looking costs time; the peak is the kernel's.
"""

import socket
import time

from perf.bench import load, procs, servers, stats

NAME = "P9"
TITLE = "64 proxied responses of 1 MiB in 16,384-byte chunks, one at a time"
SMOKE = True
BARS = [
    {"figure": "subzero_cpu_s", "bar": 0.10, "beyond": 0.05, "better": "lower", "what": "s of gateway CPU"},
    {"figure": "above_idle_kb", "bar": 512, "beyond": None, "better": "lower", "what": "KiB above idle, most"},
    {"figure": "above_start_kb", "bar": 1024, "beyond": None, "better": "lower", "what": "KiB above start-up, most"},
    {"figure": "wall_of_h2o", "bar": 2.0, "beyond": None, "better": "lower", "what": "wall time / h2o's proxy"},
    {"figure": "wall_of_nginx", "bar": 2.0, "beyond": None, "better": "lower", "what": "wall time / nginx"},
]
RESPONSES, BODY, CHUNK, WARM = 64, 1 << 20, 16384, 2
END = b"\r\n0\r\n\r\n"


class Reader:
    """One kept connection that reads chunked answers."""

    def __init__(self, port):
        self.sock = socket.create_connection(("127.0.0.1", port), 10)
        self.buffer = bytearray(1 << 18)

    def close(self):
        self.sock.close()

    def read(self, request, middle=None):
        """True when the answer was a 200 with the whole body.  middle() is called once half of it is here."""
        self.sock.sendall(request)
        head, tail, total = b"", b"", 0
        while not tail.endswith(END):
            n = self.sock.recv_into(self.buffer)
            if n == 0:
                return False
            head = head or bytes(self.buffer[:n])
            tail = (tail + bytes(self.buffer[max(0, n - len(END)):n]))[-len(END):]
            total += n
            if middle is not None and total > BODY // 2:
                middle()
                middle = None
        return head.startswith(b"HTTP/1.1 200") and total > BODY and total - BODY < BODY // 8


def fetch(server, request):
    """All of them; {"seconds", "cpu_s", "good"}."""
    reader = Reader(server.port)
    try:
        good = all([reader.read(request) for _ in range(WARM)])
        before, start = server.cpu_ns(), time.monotonic()
        with procs.staying_on(procs.cpus()[1]):
            for _ in range(RESPONSES):
                good = reader.read(request) and good
        return {"seconds": time.monotonic() - start, "cpu_s": (server.cpu_ns() - before) / 1e9, "good": good}
    finally:
        reader.close()


def memory(bench, configuration, port, request):
    """Most KiB above idle (after a HEAD, proxied) and above start-up, of a gateway of its own."""
    with bench.subzero(configuration, port) as gateway:
        time.sleep(0.5)
        start = procs.exact_kb(gateway.pid)
        status, answer = load.once(port, request.replace(b"GET ", b"HEAD ", 1))
        if status != 200:
            raise RuntimeError(f"the gateway does not proxy: {answer[:300]!r}")
        time.sleep(0.5)
        idle = procs.exact_kb(gateway.pid)
        seen = []
        reader = Reader(port)
        try:
            good = all([reader.read(request, lambda: seen.append(procs.exact_kb(gateway.pid))) for _ in range(RESPONSES)])
        finally:
            reader.close()
        seen.append(procs.exact_kb(gateway.pid))
    most, anonymous = max(rss for rss, _ in seen), max(own for _, own in seen)
    return {"start_kb": start[0], "idle_kb": idle[0], "most_kb": most, "above_idle_kb": most - idle[0],
            "above_start_kb": most - start[0], "own_above_idle_kb": anonymous - idle[1],
            "own_above_start_kb": anonymous - start[1], "good": good}


def run(bench, options):
    port = procs.free_port()
    request = load.get("/documents/roadmap", {"Authorization": f"Bearer {bench.tokens(1)[0]}"})
    pairs, memories = [], []
    with bench.bare("upstream", "chunked", BODY, CHUNK, cpu=procs.cpus()[1]) as upstream:
        configuration = servers.gateway_yaml(bench, f"  - {{address: 127.0.0.1:{port}}}", procs.free_port(), upstream.port)
        for _ in range(min(options.pairs, 5)):
            memories.append(memory(bench, configuration, port, request))
        with bench.bare("h2o", "proxy", "127.0.0.1", upstream.port) as h2o, bench.nginx_proxy(upstream.port) as nginx:
            for turn in range(options.pairs):
                with bench.subzero(configuration, port) as ours:  # a fresh one for each pair
                    sides, started = {"subzero": ours, "h2o": h2o, "nginx": nginx}, ours.cpu_ns() / 1e9
                    pair = {name: fetch(sides[name], request) for name in stats.order(list(sides), turn)}
                    pair["subzero"] |= {"start_cpu_s": started, "peak_kb": procs.memory_kb(ours.pid, "VmHWM")}
                pairs.append(pair)
                bench.say(f"  pair {turn + 1}: " + "  ".join(
                    f"{name}{'' if pair[name]['good'] else ' FAILED'} {pair[name]['cpu_s']:.4f} s CPU, "
                    f"{pair[name]['seconds']:.3f} s" for name in sides))
    return result(pairs, memories)


def result(pairs, memories):
    kept = [pair for pair in pairs if all(side["good"] for side in pair.values())]
    whole = [values for values in memories if values["good"]]
    figures = {name: stats.summary(values[name] for values in whole) for name in (whole[0] if whole else {}) if name != "good"}
    for side in ("subzero", "h2o", "nginx"):
        figures[f"{side}_cpu_s"] = stats.summary(pair[side]["cpu_s"] for pair in kept)
        figures[f"{side}_wall_s"] = stats.summary(pair[side]["seconds"] for pair in kept)
    for name in ("start_cpu_s", "peak_kb"):
        figures[name] = stats.summary(pair["subzero"][name] for pair in kept)
    for side in ("h2o", "nginx"):
        figures[f"wall_of_{side}"] = stats.summary(pair["subzero"]["seconds"] / pair[side]["seconds"] for pair in kept)
        figures[f"cpu_of_{side}"] = stats.summary(pair["subzero"]["cpu_s"] / pair[side]["cpu_s"] for pair in kept)
    return {
        "workload": {"responses": RESPONSES, "body": BODY, "chunk": CHUNK, "at_once": 1,
                     "placement": "proxies on one CPU, one at a time; reader and upstream on the other"},
        "configuration": servers.GATEWAY + servers.NGINX,
        "figures": figures,
        "pairs": pairs + memories,
        "failures": len(pairs) - len(kept) + len(memories) - len(whole),
    }
