"""Servers under measurement: started, waited for, their CPU and memory read, ended."""

import contextlib
import os
import signal
import socket
import subprocess
import time


def free_port():
    """A port that nobody holds now.  The servers here are given it at once."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpus():
    """(servers' CPU, generator's CPU): apart where there are two, so that neither steals from the other."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[-1]


def pinned(cpu, argv):
    return ["taskset", "-c", str(cpu), *argv]


@contextlib.contextmanager
def staying_on(cpu):
    """This process, as a generator of load, on one CPU for so long."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {cpu})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def family(pid):
    """The process and its descendants: nginx works in a child."""
    out = [pid]
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as f:
                for child in f.read().split():
                    out += family(int(child))
    except FileNotFoundError:
        pass
    return out


def cpu_ns(pid):
    """CPU time of all threads of the family, in nanoseconds: the scheduler's own account, finer than utime + stime."""
    total = 0
    for member in family(pid):
        try:
            for task in os.listdir(f"/proc/{member}/task"):
                with open(f"/proc/{member}/task/{task}/schedstat", encoding="ascii") as f:
                    total += int(f.read().split()[0])
        except FileNotFoundError:
            pass
    return total


def threads(pid):
    """Thread to (name, CPU time in nanoseconds)."""
    out = {}
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/comm", encoding="utf-8") as f:
                name = f.read().strip()
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
                out[int(task)] = (name, int(f.read().split()[0]))
        except FileNotFoundError:
            pass
    return out


def exact_kb(pid):
    """(resident, anonymous) by the page tables: the counters behind memory_kb lag behind by some pages a CPU."""
    found = {}
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        for line in f.read().splitlines()[1:]:
            name, value = line.split(":")
            found[name] = int(value.split()[0])
    return found["Rss"], found["Anonymous"]


def memory_kb(pid, field="VmRSS"):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        for line in f:
            if line.startswith(field + ":"):
                return int(line.split()[1])
    return 0


class Server:
    """A process that listens on `port`.  Use as a context manager: it is ended by its own pid, whatever happens."""

    def __init__(self, name, argv, port, log, cpu=None, env=None):
        self.name, self.port, self.log = name, port, log
        self.argv = pinned(cpu, argv) if cpu is not None else argv
        self.env = dict(os.environ, **(env or {}))
        self.process = None

    def __enter__(self):
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(self.argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.env)
        try:
            self.wait_ready()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def wait_ready(self, limit=10.0):
        end = time.monotonic() + limit
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        with open(self.log, encoding="utf-8", errors="replace") as f:
            raise RuntimeError(f"{self.name} does not listen on {self.port}; it said:\n{f.read()[-2000:]}")

    @property
    def pid(self):
        return self.process.pid

    def cpu_ns(self):
        return cpu_ns(self.pid)
