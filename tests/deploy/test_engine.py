"""The image built, docker-compose.yml started, the tour of docs/guides/containers.md walked, and what may happen to a
container done to it.  Skipped, with a word, where no Docker engine runs."""
import concurrent.futures
import http.client
import json
import os
import re
import signal
import socket
import threading
import time
import unittest

import engine
import kit

GUIDE = "docs/guides/containers.md"


def steps():
    """(command, expected output) of the tour: what stands in its blocks of ```console."""
    tour = kit.read(GUIDE).split("## A tour")[1].split("\n## ")[0]
    found = []
    for block in re.findall(r"^```console\n(.*?)^```$", tour, flags=re.S | re.M):
        for step in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, expected = step.partition("\n")
            found.append((command, expected.rstrip("\n")))
    return found


class Load(threading.Thread):
    """Requests one after another, each over a connection of its own, until nobody accepts any more."""

    def __init__(self, address, port):
        super().__init__(daemon=True)
        self.address, self.port = address, port
        self.stop_at = None      # when the end was asked for
        self.answered, self.failed, self.refused_late = 0, [], 0

    def run(self):
        while True:
            began = time.monotonic()
            connection = http.client.HTTPConnection(self.address, self.port, timeout=10)
            try:
                connection.request("GET", "/public/load")
                answer = connection.getresponse()
                answer.read()
                if answer.status != 200:
                    self.failed.append(f"status {answer.status}")
                self.answered += 1
            except (ConnectionRefusedError, ConnectionResetError, http.client.RemoteDisconnected, OSError) as e:
                # A connection that was asked for once the listener was to close may be refused, in any of the kernel's
                # words; one that was there before may not.
                if self.stop_at is not None and began >= self.stop_at:
                    return
                self.failed.append(repr(e))
            finally:
                connection.close()


class Engine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        kit.needs("docker")
        if engine.docker("info").returncode != 0:
            raise unittest.SkipTest("no Docker engine runs here")
        engine.find_compose()
        base = engine.base_image()
        cls.image = "subzero-test"
        ours = {"BASE_IMAGE": base, "SUBZERO_IMAGE": cls.image, "SAMPLES_IMAGE": "subzero-test-samples"}
        # The one waits for the network, the other for the compiler.
        with concurrent.futures.ThreadPoolExecutor(1) as other:
            standins = other.submit(lambda: {variable: engine.standin(variable, stage, base)
                                             for variable, stage in engine.STANDINS.items()})
            engine.must(engine.Project(ours)("build", limit=1200), "compose build")
            cls.project = engine.Project(dict(ours, **standins.result()))
        kit.at_end(cls, cls.project.down)
        started = cls.project("up", "-d", "--no-build", "prometheus", limit=300)
        if started.returncode != 0:
            raise AssertionError(started.stdout[-2000:] + cls.project("logs", "--tail=40").stdout[-6000:])
        for service in ("gateway", "redis", "openfga", "provider", "upstream", "prometheus"):
            kit.wait_for(f"{service} healthy", lambda s=service: cls.project.healthy(s), 60, 0.5)
        cls.before_the_tour = cls.token("alice")

    @classmethod
    def token(cls, subject):
        body = json.dumps({"sub": subject, "ttl": 600, "claims": {"scope": "read:documents"}})
        answer = kit.ask(cls.project.ports["PROVIDER_PORT"], "/control/token", "POST", body=body)[2]
        return json.loads(answer)["token"]

    def get(self, target, token=None, limit=10):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return kit.ask(self.project.ports["GATEWAY_PORT"], target, headers=headers, limit=limit)[0]

    # In this order: the tour is for a gateway that nobody has used.

    def test_1_the_tour(self):
        run = " ".join(self.project.compose + ["-p", self.project.name])
        script = ['docker() { if [ "$1" = compose ]; then shift; %s "$@" </dev/null; fi; }' % run]
        for number, (command, _) in enumerate(steps()):
            for name, port in (("GATEWAY_PORT", 8080), ("ADMIN_PORT", 9901), ("PROVIDER_PORT", 9400)):
                command = command.replace(f"127.0.0.1:{port}", f"127.0.0.1:{self.project.ports[name]}")
            script += [f"echo '@@ {number}'", command]
        result = kit.run("bash", stdin="\n".join(script), env=self.project.environment)
        printed = re.split(r"^@@ \d+\n", result.stdout, flags=re.M)[1:]
        self.assertGreater(len(steps()), 10)
        for (command, expected), got in zip(steps(), printed):
            if not command.startswith("docker compose"):
                pattern = ".*".join(map(re.escape, expected.split("…")))
                self.assertRegex(got.rstrip("\n"), f"(?s)^{pattern}$", f"$ {command}")
            elif expected == "…":
                self.assertNotIn("subzero:", got, f"$ {command}")
        self.assertEqual(len(printed), len(steps()))

    def test_2_it_runs_without_root_and_cannot_write(self):
        for service in ("gateway", "redis", "openfga", "provider", "upstream", "prometheus"):
            with self.subTest(service):
                self.assertEqual(self.project.inspect(service, "{{.HostConfig.ReadonlyRootfs}}"), "true")
                pid = self.project.inspect(service, "{{.State.Pid}}")
                status = dict(line.split(":\t", 1) for line in kit.read("/proc", pid, "status").splitlines())
                self.assertNotIn("0", status["Uid"].split())
                self.assertEqual(int(status["CapEff"], 16) | int(status["CapBnd"], 16), 0)
                self.assertEqual(status["NoNewPrivs"], "1")
        for target in ("/x", "/etc/subzero/x", "/usr/local/bin/x", "/tmp/x", "/run/tour/x"):
            result = self.project("exec", "-T", "gateway", "touch", target)
            self.assertIn("Read-only file system", result.stdout, target)

    def test_3_prometheus_scrapes_it_and_evaluates_every_rule(self):
        port = self.project.ports["PROMETHEUS_PORT"]

        def data(target):
            return json.loads(kit.ask(port, target)[2])["data"]

        def value(expression):
            found = data("/api/v1/query?query=" + expression)["result"]
            return float(found[0]["value"][1]) if found else None
        kit.wait_for("the target up", lambda: [t["health"] for t in data("/api/v1/targets")["activeTargets"]] == ["up"], 60)
        groups = kit.wait_for("rules evaluated", lambda: [g for g in data("/api/v1/rules")["groups"] if all(
            r["health"] == "ok" for r in g["rules"])], 60, 0.5)
        self.assertGreater(sum(len(g["rules"]) for g in groups), 12)
        kit.wait_for("a recorded ratio", lambda: value("job:subzero_token_hits:ratio_rate5m") is not None, 60, 0.5)
        self.assertGreater(value("sum(subzero_requests_total)"), 5)

    def test_4_a_redis_that_hangs_costs_nothing(self):
        token = self.token("carol")
        engine.must(self.project("pause", "redis"), "pause")
        try:
            self.assertEqual([self.get("/documents/api", self.token("carol")) for _ in range(10)], [200] * 10)
        finally:
            self.project("unpause", "redis")
        self.assertEqual(self.get("/documents/api", token), 200)

    def test_5_a_reload_by_signal(self):
        engine.must(engine.docker("kill", "-s", "HUP", self.project.container("gateway")), "docker kill -s HUP")
        kit.wait_for("the reload", lambda: "configuration reloaded" in self.project("logs", "gateway").stdout)

    def test_6_stopped_under_load_it_finishes_what_it_has_begun(self):
        """Past the published port: the proxy behind it accepts for a container that has gone."""
        address = self.project.inspect("gateway", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}")
        load = [Load(address, 8080) for _ in range(8)]
        # One whose body comes slowly: begun before the end is asked for, sent to its last byte long after.
        slow = socket.create_connection((address, 8080), timeout=20)
        slow.sendall(b"POST /public/slow HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc")
        for thread in load:
            thread.start()
        kit.wait_for("the load", lambda: sum(t.answered for t in load) > 200)
        began = time.monotonic()
        for thread in load:
            thread.stop_at = began
        stop = threading.Thread(target=lambda: self.project("stop", "gateway"))
        stop.start()
        for thread in load:
            thread.join(30)
            self.assertFalse(thread.is_alive())
        time.sleep(1)
        slow.sendall(b"def")
        answer = b""
        while chunk := slow.recv(65536):
            answer += chunk
        slow.close()
        stop.join(60)
        took = time.monotonic() - began
        self.assertEqual([f for t in load for f in t.failed], [])
        self.assertIn(b"200 OK", answer.split(b"\r\n")[0])
        self.assertIn(b"POST /public/slow", answer)
        self.assertEqual(self.project.inspect("gateway", "{{.State.ExitCode}}"), "0")
        self.assertLess(took, 20, "it was killed rather than drained")

    def test_7_started_again_it_has_forgotten_no_revocation(self):
        token = self.token("carol")
        engine.must(self.project("start", "gateway"), "start")
        kit.wait_for("the gateway healthy", lambda: self.project.healthy("gateway"), 60, 0.5)
        kit.wait_for("carol let in", lambda: self.get("/documents/api", token) == 200)
        # The tour has revoked what was alice's until then.
        self.assertEqual(self.get("/documents/roadmap", self.before_the_tour), 401)

    def test_8_killed_it_is_started_again(self):
        if os.geteuid() != 0:
            self.skipTest("only root can kill what runs in a container")
        os.kill(int(self.project.inspect("gateway", "{{.State.Pid}}")), signal.SIGKILL)
        kit.wait_for("another process", lambda: self.project.inspect("gateway", "{{.RestartCount}}") == "1", 60, 0.5)
        kit.wait_for("carol let in", lambda: self.get("/documents/api", self.token("carol")) == 200, 60, 0.5)

    def test_9_the_image_by_itself(self):
        shut = ("run", "--rm", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--network", "none")
        result = engine.docker(*shut, self.image, "version")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("0.1.0", result.stdout)
        result = engine.docker(*shut, self.image)
        self.assertEqual(result.returncode, 1)
        self.assertIn("/etc/subzero/subzero.yaml", result.stdout)
        result = engine.docker(*shut, self.image, "serve")
        self.assertEqual(result.returncode, 1)
        self.assertIn("AUTH0_DOMAIN is not set", result.stdout)
        # Not by ldd: what it loads when somebody is to be asked.
        result = engine.docker(*shut, "--entrypoint", "ldconfig", self.image, "-p")
        self.assertIn("libcurl.so.4", result.stdout)
