"""wrk over raw requests, with the server's CPU time read around it."""

import json
import os
import socket
import subprocess

from perf.bench import procs, stats

LUA = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "load", "requests.lua")


def write_requests(path, requests):
    with open(path, "wb") as f:
        for request in requests:
            f.write(request + b"%%\n")


def get(path, headers):
    lines = [f"GET {path} HTTP/1.1", "Host: 127.0.0.1"] + [f"{k}: {v}" for k, v in headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def decision(token):
    """What an nginx in front asks about a reader's request."""
    return get("/auth", {"X-Original-URI": "/documents/roadmap", "X-Original-Method": "GET", "X-Forwarded-For": "192.0.2.7",
                         "Authorization": f"Bearer {token}"})


def once(port, request):
    """Sends one request, returns (status, whole answer): what is measured must first be right."""
    with socket.create_connection(("127.0.0.1", port), 5) as s:
        s.sendall(request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1))
        answer = b""
        while chunk := s.recv(65536):
            answer += chunk
    status = answer.split(b" ", 2)[1:2]
    return (int(status[0]) if status else 0), answer


def parse(output):
    for line in output.splitlines():
        if line.startswith("BENCH "):
            return json.loads(line[6:])
    raise RuntimeError(f"wrk said nothing usable:\n{output[-2000:]}")


def wrk(port, requests_file, seconds, connections, cpu):
    argv = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "-s", LUA, f"http://127.0.0.1:{port}/"]
    env = dict(os.environ, BENCH_REQUESTS=requests_file)
    done = subprocess.run(procs.pinned(cpu, argv), capture_output=True, text=True, check=False, env=env)
    return parse(done.stdout + done.stderr)


def measure(server, requests_file, seconds, connections):
    """One side of a pair."""
    before = server.cpu_ns()
    run = wrk(server.port, requests_file, seconds, connections, procs.cpus()[1])
    used = server.cpu_ns() - before
    n = run["requests"]
    return {"requests": n, "seconds": run["seconds"], "rps": n / run["seconds"] if run["seconds"] else 0,
            "cpu_us": used / 1000 / n if n else 0, "p50_us": run["p50_us"], "p95_us": stats.enough(run["p95_us"], 95, n),
            "p99_us": stats.enough(run["p99_us"], 99, n), "max_us": run["max_us"], "bytes": run.get("bytes", 0), "errors": run["errors"]}


def profile(server, requests_file, seconds, connections, scratch, say):
    """One more run of ours under perf: where its CPU time goes, by symbol.  Sampled by the clock, so it works in a guest."""
    data = os.path.join(scratch, "perf.data")
    recorder = subprocess.Popen(["perf", "record", "-q", "-e", "cpu-clock", "-F", "2000", "-o", data, "-p", str(server.pid),
                                 "--", "sleep", str(seconds)], stderr=subprocess.DEVNULL)
    wrk(server.port, requests_file, seconds, connections, procs.cpus()[1])
    recorder.wait()
    for what, more in (("by library", ["--sort", "dso"]), ("by symbol, kernel left out", ["--sort", "symbol"])):
        say(f"  profile {what}:")
        report = subprocess.run(["perf", "report", "-i", data, "--stdio", "--no-children", "-q", "--percent-limit", "0.4", *more],
                                capture_output=True, text=True, check=False)
        lines = [line.rstrip(" -") for line in report.stdout.splitlines() if line.strip() and "[k]" not in line]
        for line in lines[:40]:
            say("  " + line)


def failed(pair):
    return any(side["requests"] == 0 or any(side["errors"].values()) for side in pair.values())


def pairs(servers, requests_file, options, bench):
    """Interleaved runs of all sides until enough pairs are good, at most twice as many; (good, bad).  requests_file: one for
    all, or one for each by its name."""
    wanted, seconds, connections, say = options.pairs, options.seconds, options.connections, bench.say
    files = requests_file if isinstance(requests_file, dict) else dict.fromkeys(servers, requests_file)
    for name, server in servers.items():
        measure(server, files[name], 1, connections)
    good, bad = [], []
    names = list(servers)
    turn = 0
    while len(good) < wanted and turn < 2 * wanted:
        pair = {}
        for name in stats.order(names, turn):
            pair[name] = measure(servers[name], files[name], seconds, connections)
        turn += 1
        (bad if failed(pair) else good).append(pair)
        say("  pair %d%s: " % (turn, " FAILED" if failed(pair) else "") +
            "  ".join(f"{name} {pair[name]['cpu_us']:.2f} us, {pair[name]['rps']:,.0f}/s" for name in names))
    if options.profile:
        profile(servers["subzero"], files["subzero"], max(seconds, 3), connections, bench.scratch, say)
    return good, bad


def figures(good, ours, theirs, label=""):
    """What a comparison yields: the ratio by CPU decides, the ratio by requests/s is said beside it."""
    suffix = f"_vs_{label}" if label else ""
    out = {
        f"cpu_ratio{suffix}": stats.summary(stats.ratios(good, ours, theirs, "cpu_us", True)),
        f"rps_ratio{suffix}": stats.summary(stats.ratios(good, ours, theirs, "rps", False)),
    }
    for side in (ours, theirs):
        for key in ("cpu_us", "rps", "p50_us", "p99_us"):
            out[f"{side}_{key}"] = stats.summary(pair[side][key] for pair in good)
    return out
