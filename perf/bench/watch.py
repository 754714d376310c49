"""A process looked at beside a run: memory, CPU, descriptors over time."""

import os
import threading
import time

from perf.bench import procs


class Watch:
    """Looks every `every` seconds until it is left; .samples are (seconds, resident MB, CPU % since the last, descriptors)."""

    def __init__(self, pid, every=1.0):
        self.pid, self.every, self.samples = pid, every, []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look, daemon=True)

    def __enter__(self):
        self.began = time.monotonic()
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def look(self):
        before, at = procs.cpu_ns(self.pid), time.monotonic()
        while not self.over.wait(self.every):
            used, now = procs.cpu_ns(self.pid), time.monotonic()
            try:
                held = len(os.listdir(f"/proc/{self.pid}/fd"))
                resident = procs.memory_kb(self.pid) / 1000
            except OSError:
                return
            self.samples.append((round(now - self.began, 2), resident, (used - before) / (now - at) / 1e7, held))
            before, at = used, now

    def series(self, column):
        """[[seconds, value]], at most some 300 of them."""
        step = max(1, len(self.samples) // 300)
        return [[sample[0], round(sample[column], 3)] for sample in self.samples[::step]]
