"""A Docker engine for tests: the images of docker-compose.yml, built here or stood in for, and the project itself."""
import os
import re
import shutil
import tempfile
import unittest

import kit

# Of the project: (variable of docker-compose.yml, stage of standins/Dockerfile).
STANDINS = {"REDIS_IMAGE": "redis", "PROMETHEUS_IMAGE": "prometheus", "OPENFGA_IMAGE": "openfga"}
BASE = "debian:bookworm-slim"
BASE_MADE_HERE = "subzero-test-base"
PEERS = os.environ.get("SUBZERO_PEERS") or os.path.join(
    os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "subzero/peers")


def docker(*arguments, limit=120, env=None):
    return kit.run("docker", *arguments, limit=limit, env=env)


def must(result, what):
    if result.returncode != 0:
        raise AssertionError(f"{what}: exit status {result.returncode}\n{result.stdout[-4000:]}")
    return result.stdout


def find_compose():
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]) and kit.run(*command, "version").returncode == 0:
            return command
    raise unittest.SkipTest("neither docker compose nor docker-compose is here")


def mirror():
    """Where this machine's own Debian packages come from."""
    for folder, pattern in (("/etc/apt/sources.list.d", r"^URIs: *(\S+)"), ("/etc/apt", r"^deb (?:\[.*?\] )?(\S+) bookworm ")):
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
            if name.endswith((".list", ".sources")):
                found = re.search(pattern, kit.read(folder, name), flags=re.M)
                if found and "debian" in name + found[1]:
                    return found[1]
    raise unittest.SkipTest("no base image can be had, and no mirror of Debian is known here")


def base_image():
    """Debian's own where it is or can be had, else one made by debootstrap, once."""
    for image in (BASE, BASE_MADE_HERE):
        if docker("image", "inspect", image).returncode == 0:
            return image
    if docker("pull", "-q", BASE, limit=60).returncode == 0:
        return BASE
    kit.needs("debootstrap")
    if os.geteuid() != 0:
        raise unittest.SkipTest("no base image can be had, and debootstrap wants root")
    archive = kit.path("build/deploy/base.tar")
    if not os.path.exists(archive):
        os.makedirs(os.path.dirname(archive), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(archive)) as root:
            must(kit.run("debootstrap", "--variant=minbase", "bookworm", root, mirror(), limit=300), "debootstrap")
            waste = [os.path.join(root, name) for name in
                     ("usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt/archives", "var/lib/apt/lists")]
            must(kit.run("find", *waste, "-mindepth", "1", "-delete"), "find")
            must(kit.run("tar", "-C", root, "-cf", archive + ".new", "."), "tar")
        os.rename(archive + ".new", archive)
    must(docker("import", archive, BASE_MADE_HERE), "docker import")
    return BASE_MADE_HERE


def standin(variable, stage, base):
    """The image that docker-compose.yml names, or one like it."""
    named = re.search(r"\$\{%s:-([^}]+)\}" % variable, kit.read("docker-compose.yml"))[1]
    if base == BASE and (docker("image", "inspect", named).returncode == 0 or
                         docker("pull", "-q", named, limit=120).returncode == 0):
        return named
    with tempfile.TemporaryDirectory() as context:
        for name in os.listdir(kit.path("tests/deploy/standins")):
            shutil.copy(kit.path("tests/deploy/standins", name), context)
        peer = os.path.join(PEERS, "openfga")
        if not os.path.exists(peer):
            raise unittest.SkipTest("no OpenFGA is here: script/peers openfga builds it")
        shutil.copy(peer, context)
        tag = f"subzero-test-{stage}"
        must(docker("build", "-q", "--build-arg", f"BASE_IMAGE={base}", "--target", stage, "-t", tag, context, limit=600,
                    env={"DOCKER_BUILDKIT": "0"}), f"docker build {stage}")
        return tag


class Project:
    """docker-compose.yml under a name and with ports of its own."""

    def __init__(self, environment):
        self.compose = find_compose()
        self.name = f"subzerotest{os.getpid()}"
        self.ports = {name: kit.free_port() for name in
                      ("GATEWAY_PORT", "ADMIN_PORT", "PROVIDER_PORT", "PROMETHEUS_PORT", "GRAFANA_PORT")}
        self.environment = dict(environment, **{name: str(port) for name, port in self.ports.items()})
        if self.compose == ["docker-compose"]:      # what a newer client calls BuildKit an old engine does not have
            self.environment.update(DOCKER_BUILDKIT="0", COMPOSE_DOCKER_CLI_BUILD="0")

    def __call__(self, *arguments, limit=180):
        return kit.run(*self.compose, "-p", self.name, "--profile", "monitoring", *arguments, limit=limit,
                       env=self.environment)

    def container(self, service):
        return self("ps", "-q", service).stdout.split()[-1]

    def inspect(self, service, what):
        return docker("inspect", "-f", what, self.container(service)).stdout.strip()

    def healthy(self, service):
        return self.inspect(service, "{{.State.Health.Status}}") == "healthy"

    def down(self):
        return self("down", "-v", "--remove-orphans", "-t", "5")
