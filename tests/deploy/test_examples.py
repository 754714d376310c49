"""Every configuration that is written anywhere, by `subzero check`: deploy/examples, the tour's, and each block of
```yaml in the documents (```yml is other programs').  A block that shows a part is given the rest."""
import os
import re
import tempfile
import unittest

import yaml

import kit

# What stands in a file, by the key that names it and, where that is not enough, the one above.
FILES = {"jwks_file": "jwks", "model": "model", "tuples": "tuples", "certificate": "cert", "client_ca": "cert",
         "ca_file": "cert", "key": "pem", "file": "addresses", "key_file": "key", "seal_keys_file": "key",
         "pseudonym_key_file": "key", "events_key_file": "secret", "secret_file": "secret",
         "client_secret_file": "secret", "password_file": "secret", "token_file": "secret", "keys_file": "secret",
         "preshared_keys_file": "preshared", ("assertion", "key_file"): "jwk", ("audit", "key_file"): "ed25519",
         ("introspection", "key_file"): "jwk"}
PATHS = re.compile(r"(?<![\w:/.])/(?:etc/subzero|run/secrets|run/tour|var/lib/subzero|mnt/elsewhere)/")
ENVIRONMENT = {"FGA_STORE_ID": "01ARZ3NDEKTSV4RRFFQ69G5FAV", "FGA_MODEL_ID": "01ARZ3NDEKTSV4RRFFQ69G5FAW"}


def contents(kind, folder):
    if kind in ("cert", "pem"):
        pem = [os.path.join(folder, name) for name in ("any.cert", "any.key")]
        if not os.path.exists(pem[0]):
            kit.run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "1000", "-subj", "/CN=localhost", "-keyout", pem[1], "-out", pem[0])
        return kit.read(pem[kind == "pem"])
    return {"jwks": lambda: kit.read("deploy/examples/jwks.json"),
            "model": lambda: kit.read("deploy/examples/documents.fga"),
            "tuples": lambda: kit.read("deploy/examples/documents-tuples.yaml"),
            "addresses": lambda: "198.51.100.0/24\n", "secret": lambda: "s3cret" * 12, "preshared": lambda: "write " + "k3y" * 12,
            "key": lambda: kit.run(kit.BINARY, "key", "new").stdout,
            "jwk": lambda: kit.run(kit.BINARY, "key", "new", "--jwk", "ES256").stdout,
            "ed25519": lambda: kit.run(kit.BINARY, "key", "new", "--jwk", "EdDSA").stdout}[kind]()


def each(value, above=None):
    """(key above, key, value) of every pair of a document."""
    for key, below in value.items() if isinstance(value, dict) else []:
        yield above, key, below
        yield from each(below, key)
    for item in value if isinstance(value, list) else []:
        yield from each(item, above)


def make_files(document, folder):
    for above, key, value in each(document):
        kind = FILES.get((above, key)) or FILES.get(key)
        if kind is None or not isinstance(value, str) or "\n" in value or value.startswith("${"):
            continue
        name = os.path.join(folder, value)
        if not os.path.exists(name):
            os.makedirs(os.path.dirname(name), exist_ok=True)
            with open(name, "w", encoding="utf-8") as f:
                f.write(contents(kind, folder))
            os.chmod(name, 0o600)


def rest_of(document):
    """The sections that a block leaves out, with what it names in them."""
    def named(where):
        return [item for _, key, value in each(document) if key == where
                for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]
    rest = {"listen": [{"address": "127.0.0.1:8080"}], "admin": {"address": "127.0.0.1:9901"},
            "issuers": {name: {"issuer": f"https://{name}.example/", "audiences": ["api"]}
                        for name in set(named("issuers")) | {"company"}},
            "upstreams": {name: {"urls": ["http://127.0.0.1:9000"]} for name in set(named("upstream")) | {"application"}},
            "routes": [{"id": "rest", "match": {"path": "/rest"}, "auth": {"issuers": [next(iter(
                document.get("issuers", {"company": {}})))]}, "upstream": next(iter(document.get("upstreams", {"application": {}})))}]}
    if named("rate_limit"):
        rest["rate_limits"] = {name: {"algorithm": "sliding_window", "limit": 1, "window": "1s",
                                      "on_store_failure": "closed"} for name in named("rate_limit")}
    if any(key == "authorize" for _, key, _ in each(document)):
        rest["fga"] = {"model": "rest/model.fga", "tuples": "rest/tuples.yaml"}
    return {key: value for key, value in rest.items() if key not in document}


def check(text, whole=False):
    """None, or what is wrong with a configuration."""
    with tempfile.TemporaryDirectory() as folder:
        text = PATHS.sub(folder + "/", text)
        try:
            document = yaml.safe_load(text)
        except yaml.YAMLError as e:
            return str(e)
        if not whole:
            rest = rest_of(document)
            text += "\n# the rest\n" + yaml.safe_dump(rest)
            make_files(rest, folder)
        make_files(document, folder)
        name = os.path.join(folder, "subzero.yaml")
        with open(name, "w", encoding="utf-8") as f:
            f.write(text)
        result = kit.run(kit.BINARY, "check", "-c", name, env=ENVIRONMENT)
        return None if result.returncode == 0 else result.stdout.replace(folder, "") + text


def blocks(file):
    """(line, text) of each block of ```yaml in a document."""
    text = kit.read(file)
    for found in re.finditer(r"^( *)```yaml\n(.*?)^ *```$", text, flags=re.S | re.M):
        indent = len(found[1])
        yield text[:found.start()].count("\n") + 1, "".join(line[indent:] for line in found[2].splitlines(True))


class Examples(unittest.TestCase):
    def setUp(self):
        kit.needs(kit.BINARY, "openssl")

    def test_files_of_deploy(self):
        self.assertIsNone(check(kit.read("deploy/compose/gateway.yaml"), whole=True))
        for file in ("deploy/examples/subzero.yaml", "deploy/examples/documents.yaml"):
            result = kit.run(kit.BINARY, "check", "-c", file)
            self.assertEqual(result.returncode, 0, result.stdout)

    def test_blocks_of_the_documents(self):
        documents = kit.run("git", "ls-files", "-co", "--exclude-standard", "*.md").stdout.split()
        found = 0
        for file in documents:
            for line, text in blocks(file):
                found += 1
                with self.subTest(f"{file}:{line}"):
                    self.assertIsNone(check(text))
        self.assertGreater(found, 15)

    def test_a_mistake_in_a_block_is_found(self):
        self.assertIn("ratelimit", check("routes: [{id: a, match: {path: /a}, public: true, ratelimit: x}]"))
        self.assertIn("redis", check("redis: {url: ftp://a, key_file: /run/secrets/a}"))
        self.assertIsNone(check("redis: {url: redis://a, key_file: /run/secrets/a}"))


class Links(unittest.TestCase):
    def test_every_link_between_documents_leads_somewhere(self):
        def anchors(file):
            found = set()
            for heading in re.findall(r"^#+ (.*)$", re.sub(r"^ *```.*?^ *```", "", kit.read(file), flags=re.S | re.M), flags=re.M):
                found.add(re.sub(r"[^\w\- ]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading).strip().lower()).replace(" ", "-"))
            return found
        for file in kit.run("git", "ls-files", "-co", "--exclude-standard", "*.md").stdout.split():
            text = re.sub(r"^ *```.*?^ *```", "", kit.read(file), flags=re.S | re.M)
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"[a-z]+:", target):
                    continue
                name, _, fragment = target.partition("#")
                there = os.path.normpath(os.path.join(os.path.dirname(file), name)) if name else file
                with self.subTest(f"{file}: {target}"):
                    self.assertTrue(os.path.exists(kit.path(there)))
                    if fragment and there.endswith(".md"):
                        self.assertIn(fragment, anchors(there))
