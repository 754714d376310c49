"""deploy/Dockerfile and docker-compose.yml, read: what holds without an engine."""
import fnmatch
import re
import shutil
import unittest

import kit


def instructions():
    """(instruction, rest) of each, continued lines joined, comments out."""
    text = re.sub(r"^\s*#.*\n", "", kit.read("deploy/Dockerfile"), flags=re.M).replace("\\\n", " ")
    return [line.split(None, 1) for line in text.splitlines() if line.strip()]


class Dockerfile(unittest.TestCase):
    def test_the_classic_builder_can_read_it(self):
        for name, rest in instructions():
            with self.subTest(f"{name} {rest[:60]}"):
                self.assertIn(name, ("ARG", "FROM", "RUN", "COPY", "WORKDIR", "LABEL", "USER", "EXPOSE", "STOPSIGNAL",
                                     "HEALTHCHECK", "ENTRYPOINT", "CMD"))
                if name in ("RUN", "COPY"):
                    self.assertNotRegex(rest, r"^--(mount|network|security|chmod|link|exclude|parents)|<<")
                    self.assertNotRegex(rest, r"\b(TARGET|BUILD)(ARCH|OS|PLATFORM|VARIANT)\b")
        self.assertNotRegex(kit.read("deploy/Dockerfile"), r"(?m)^#\s*(syntax|escape)=")

    def test_every_image_comes_from_the_base_argument(self):
        self.assertIn(["ARG", "BASE_IMAGE=debian:bookworm-slim"], instructions())
        stages = set()
        for name, rest in instructions():
            if name == "FROM":
                image, _, stage = rest.partition(" AS ")
                self.assertTrue(image == "${BASE_IMAGE}" or image in stages, rest)
                stages.add(stage)

    def test_the_last_stage_is_the_gateway_without_root(self):
        stages, current = {}, None
        for name, rest in instructions():
            if name == "FROM":
                image, _, current = rest.partition(" AS ")
                stages[current] = [("FROM", image)]
            elif current is not None:
                stages[current].append((name, rest))
        self.assertEqual(stages[""], [("FROM", "runtime")])
        runtime = dict(stages["runtime"])
        self.assertRegex(runtime["USER"], r"^[1-9]\d*:[1-9]\d*$")
        self.assertIn('CMD ["subzero", "healthcheck"]', runtime["HEALTHCHECK"])
        self.assertEqual(runtime["ENTRYPOINT"], '["subzero"]')
        users = [rest for name, rest in stages["samples"] if name == "USER"]
        self.assertEqual(users[-1], runtime["USER"])

    def test_what_is_copied_gets_through_dockerignore(self):
        lines = [line for line in kit.read(".dockerignore").splitlines() if line and not line.startswith("#")]
        self.assertEqual(lines[0], "*")
        let_in = [line[1:] for line in lines[1:] if line.startswith("!")]
        copied = []
        for name, rest in instructions():
            if name == "COPY" and not rest.startswith("--from"):
                copied += rest.split()[:-1]
        for source in copied:
            self.assertTrue(any(source == p or source.startswith(p + "/") for p in let_in), source)
        for pattern in let_in:
            self.assertTrue(any(p == pattern or p.startswith(pattern + "/") or pattern.startswith(p + "/") or
                                fnmatch.fnmatch(p, pattern) for p in copied), f"{pattern} is let in for nobody")

    def test_no_host_is_named(self):
        self.assertNotRegex(kit.read("deploy/Dockerfile"), r"https?://")


def services():
    return kit.load("docker-compose.yml")["services"]


class Compose(unittest.TestCase):
    def test_compose_accepts_it(self):
        for command in (["docker-compose"], ["docker", "compose"]):
            if shutil.which(command[0]) is None or kit.run(*command, "version").returncode != 0:
                continue
            result = kit.run(*command, "config", "-q")
            self.assertEqual(result.returncode, 0, result.stdout)
            return
        self.skipTest("neither docker-compose nor docker compose is here")

    def test_it_has_nothing_that_compose_1_29_refuses(self):
        sections = {name for name in kit.load("docker-compose.yml") if not name.startswith("x-")}
        self.assertEqual(sections, {"services", "volumes"})

    def test_no_image_of_ours_is_looked_for_elsewhere(self):
        """A service without `build` has its image pulled before another one has built it."""
        for name, service in services().items():
            ours = re.match(r"\$\{(SUBZERO|SAMPLES)_IMAGE", service["image"])
            self.assertEqual(bool(ours), "build" in service, name)

    def test_every_container_is_shut_in(self):
        for name, service in services().items():
            with self.subTest(name):
                self.assertIs(service["read_only"], True)
                self.assertEqual(service["cap_drop"], ["ALL"])
                self.assertNotIn("cap_add", service)
                self.assertNotIn("privileged", service)
                self.assertIn("no-new-privileges:true", service["security_opt"])
                self.assertRegex(service["mem_limit"], r"^\d+m$")
                self.assertTrue(service["cpus"] and service["pids_limit"])
                if "SUBZERO" in service["image"] or "SAMPLES" in service["image"]:
                    self.assertNotIn("user", service)      # the image's own
                else:
                    self.assertRegex(service["user"], r"^[1-9]\d*:\d+$")

    def test_every_container_that_stays_is_watched(self):
        for name, service in services().items():
            with self.subTest(name):
                if service.get("restart") == "no":
                    continue
                self.assertTrue(service["healthcheck"]["test"])
                for other, condition in service.get("depends_on", {}).items():
                    runs_once = services()[other].get("restart") == "no"
                    self.assertEqual(condition["condition"],
                                     "service_completed_successfully" if runs_once else "service_healthy")

    def test_ports_are_this_machines_alone_and_can_be_others(self):
        for name, service in services().items():
            for port in service.get("ports", []):
                self.assertRegex(port, r"^127\.0\.0\.1:\$\{[A-Z]+_PORT:-\d+\}:\d+$", name)

    def test_every_image_can_be_another(self):
        for service in services().values():
            self.assertRegex(service["image"], r"^\$\{[A-Z]+_IMAGE:-[^}]+\}$")

    def test_redis_keeps_what_it_has_accepted(self):
        command = " ".join(services()["redis"]["command"])
        self.assertIn("--maxmemory 256mb --maxmemory-policy noeviction", command)

    def test_monitoring_is_a_profile(self):
        self.assertEqual({n for n, s in services().items() if s.get("profiles") == ["monitoring"]},
                         {"prometheus", "grafana"})

    def test_the_container_is_given_longer_than_the_drain(self):
        drain = re.search(r"drain: (\d+)s", kit.read("deploy/compose/gateway.yaml"))
        grace = re.match(r"(\d+)s", services()["gateway"]["stop_grace_period"])
        self.assertGreater(int(grace[1]), int(drain[1]))
