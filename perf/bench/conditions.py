"""The fingerprint of the conditions: figures with different fingerprints are not comparable.

What changes with every commit (the binary itself) stands beside it, in build().
"""

import hashlib
import json
import os
import platform
import subprocess

LIBRARIES = ["libh2o-evloop", "openssl", "libsodium", "jansson", "yaml-0.1", "libjwt"]
TOOLS = {"gcc": ["gcc", "--version"], "wrk": ["wrk", "-v"], "nginx": ["nginx", "-v"], "cmake": ["cmake", "--version"]}
PEERS = {"haproxy": ["haproxy", "-v"], "redis": ["redis-server", "--version"], "locust": ["dpkg-query", "-W", "python3-locust"]}


def first_line(argv):
    """The first line a program says about itself, on whichever stream; 'absent' when it is not there."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "absent"
    lines = (done.stdout + done.stderr).strip().splitlines()
    return lines[0].strip() if lines else "silent"


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def memory_gib():
    return round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30)


def peers():
    """Versions of those on the other side; of the Go programs the hash of their pinned module (script/peers)."""
    out = {name: first_line(argv) for name, argv in PEERS.items()}
    folder = os.environ.get("SUBZERO_PEERS", os.path.expanduser("~/.cache/subzero/peers"))
    for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if entry.endswith(".stamp"):
            with open(os.path.join(folder, entry), encoding="ascii") as f:
                out[entry.removesuffix(".stamp")] = f.read().strip()
    return out


def cmake_cache(folder):
    wanted = ("CMAKE_BUILD_TYPE", "CMAKE_C_FLAGS", "CMAKE_C_FLAGS_RELEASE", "SZ_LTO")
    out = {}
    try:
        with open(os.path.join(folder, "CMakeCache.txt"), encoding="utf-8") as f:
            for line in f:
                key, _, value = line.strip().partition("=")
                if key.split(":")[0] in wanted:
                    out[key.split(":")[0]] = value
    except FileNotFoundError:
        pass
    return out


def conditions(build_folder, workload, configuration):
    known = {
        "machine": {"cpu": cpu_model(), "cores": len(os.sched_getaffinity(0)), "memory_gib": memory_gib(),
                    "architecture": platform.machine(), "kernel": platform.release()},
        "toolchain": dict({name: first_line(argv) for name, argv in TOOLS.items()}, **cmake_cache(build_folder)),
        "libraries": {name: first_line(["pkg-config", "--modversion", name]) for name in LIBRARIES},
        "peers": peers(),
        "workload": workload,
        "configuration": configuration,
    }
    text = json.dumps(known, sort_keys=True).encode()
    return dict(known, fingerprint=hashlib.sha256(text).hexdigest()[:16])


def build(root, binary):
    def git(*args):
        return subprocess.run(["git", "-C", root, *args], capture_output=True, text=True, check=False).stdout.strip()

    digest = None
    if os.path.exists(binary):
        with open(binary, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
    # Results themselves are no change of what was measured.
    dirty = [line for line in git("status", "--porcelain").splitlines() if "perf/results/" not in line]
    return {"commit": git("rev-parse", "HEAD"), "dirty": bool(dirty), "binary_sha256": digest}
