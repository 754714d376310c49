"""The systemd unit: what systemd says of it, and that the gateway can live with what it forbids."""
import os
import re
import signal
import subprocess
import tempfile
import unittest

import kit

UNIT = "deploy/systemd/subzero.service.in"
# systemd's own scale, 0 (shut in) to 10, in tenths.  What is left: it talks to the network, may bind low ports, and
# shares the host's users and root directory.
EXPOSURE = 15


def installed(folder):
    name = os.path.join(folder, "subzero.service")
    with open(name, "w", encoding="utf-8") as f:
        f.write(kit.read(UNIT).replace("@SZ_BINDIR@", os.path.dirname(kit.BINARY)))
    return name


def calls_in(group, seen=()):
    """The system calls of one of systemd's groups, those of the groups in it included."""
    calls = set()
    for line in kit.run("systemd-analyze", "syscall-filter", group).stdout.splitlines()[1:]:
        word = line.strip()
        if word.startswith("@"):
            calls |= calls_in(word, (*seen, group)) if word not in seen else set()
        elif word and not word.startswith("#"):
            calls.add(word)
    return calls


def allowed():
    calls = calls_in("@default")
    for line in re.findall(r"^SystemCallFilter=(.*)$", kit.read(UNIT), flags=re.M):
        for group in line.lstrip("~").split():
            calls = calls - calls_in(group) if line.startswith("~") else calls | calls_in(group)
    return calls


class Systemd(unittest.TestCase):
    def setUp(self):
        kit.needs("systemd-analyze", kit.BINARY)

    def test_systemd_reads_it_without_complaint(self):
        with tempfile.TemporaryDirectory() as folder:
            result = kit.run("systemd-analyze", "verify", "--man=no", installed(folder))
        if "Failed to" in result.stdout and "manager" in result.stdout:
            self.skipTest(result.stdout.strip())
        self.assertEqual((result.returncode, result.stdout), (0, ""))

    def test_it_is_hardened(self):
        with tempfile.TemporaryDirectory() as folder:
            result = kit.run("systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE}",
                             installed(folder))
        if "unrecognized option" in result.stdout:
            self.skipTest("this systemd-analyze cannot look at a file")
        self.assertEqual(result.returncode, 0, "\n".join(l for l in result.stdout.splitlines() if "✓" not in l))

    def test_it_waits_longer_than_the_drain(self):
        default = re.search(r"\| `drain` \|[^|]*\| `(\d+)s` \|", kit.read("docs/configuration.md"))
        stop = re.search(r"^TimeoutStopSec=(\d+)$", kit.read(UNIT), flags=re.M)
        self.assertGreater(int(stop[1]), int(default[1]))

    def test_the_gateway_needs_no_call_that_is_forbidden(self):
        """From the start over requests, a look-up of names, a reload and an audit journal to the drain."""
        kit.needs("strace")
        port, admin = kit.free_port(), kit.free_port()
        with tempfile.TemporaryDirectory() as folder:
            config, trace, log = (os.path.join(folder, name) for name in ("subzero.yaml", "trace", "log"))
            with open(config, "w", encoding="utf-8") as f:
                f.write(f"""
listen: [{{address: "127.0.0.1:{port}"}}]
admin: {{address: "127.0.0.1:{admin}"}}
workers: 2
state_dir: {folder}/state
audit: {{path: {folder}/audit}}
issuers: {{a: {{issuer: "https://localhost:1/", audiences: [a], jwks_uri: "https://localhost:1/keys"}}}}
upstreams: {{u: {{urls: ["http://localhost:{admin}"]}}}}
routes:
  - {{id: a, match: {{path: "/a/*"}}, auth: {{issuers: [a]}}, upstream: u}}
  - {{id: b, match: {{path: "/*"}}, public: true, covers_guarded: true, upstream: u}}
""")
            with open(log, "w", encoding="utf-8") as out:
                gateway = subprocess.Popen(["strace", "-f", "-qq", "-o", trace, kit.BINARY, "serve", "-c", config],
                                           stdout=out, stderr=out)
            try:
                kit.wait_for("the gateway", lambda: kit.ask(admin, "/livez", headers={"Host": "localhost"})[0] == 200)
                self.assertEqual(kit.ask(port, "/livez", headers={"Host": "localhost"})[0], 200)
                self.assertEqual(kit.ask(port, "/a/1")[0], 401)
                child = int(kit.run("pgrep", "-P", str(gateway.pid)).stdout)
                os.kill(child, signal.SIGHUP)
                kit.wait_for("the reload", lambda: "configuration reloaded" in kit.read(log))
                os.kill(child, signal.SIGTERM)
                gateway.wait(30)
            finally:
                if gateway.poll() is None:
                    gateway.kill()
                    gateway.wait()
            with open(trace, encoding="utf-8", errors="replace") as f:
                used = set(re.findall(r"^\d+ +([a-z_0-9]+)\(", f.read(), flags=re.M))
        self.assertGreater(len(used), 40)
        # strace itself runs the program, which systemd does before the filter is there.
        self.assertEqual(used - allowed(), set())
