"""Upgrades and going back: what every version has left behind (kept.py) is read by this one, what this one writes has
the form that the version before can read, and a form that is newer is refused rather than ignored."""
import os
import re
import shutil
import tempfile
import unittest

import kit
from kept import FOLDER, Kept

# How each file begins, and the same with a number that stands for a form to come.
FORMS = {"state/revocations": (rb"^(subzero revocations )\d", rb"\g<1>9"),
         "state/fga/stores.log": (rb"^(SZFGALOG)[\x01-\x08]", b"\\g<1>\x09")}


def form(kept, name):
    with open(kept.path(name), "rb") as f:
        return re.match(FORMS[name][0], f.read(64))[0]


class Upgrade(unittest.TestCase):
    def setUp(self):
        kit.needs("redis-server", "redis-cli", kit.BINARY, os.path.join(kit.PERF, "fake_upstream"))

    def copy_of(self, version):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        shutil.copytree(os.path.join(FOLDER, version), folder, dirs_exist_ok=True)
        return Kept(folder)

    def check(self, kept):
        self.assertEqual(kept.get("/open/a", sub="alice"), 200)
        # What somebody shut out stays out ...
        self.assertEqual(kept.get("/open/a", sub="alice", jti="stolen"), 401)
        self.assertEqual(kept.get("/open/a", sub="alice", sid="left"), 401)
        self.assertEqual(kept.get("/open/a", key="retired.jwk", sub="alice"), 401)
        # ... and what was granted stays granted, nothing else.
        self.assertEqual(kept.get("/documents/roadmap", sub="alice"), 200)
        self.assertEqual(kept.get("/documents/api", sub="carol"), 200)
        self.assertEqual(kept.get("/documents/roadmap", sub="bob"), 403)

    def test_what_each_version_has_kept(self):
        versions = os.listdir(FOLDER)
        self.assertIn(re.search(r"VERSION (\d+\.\d+\.\d+)", kit.read("CMakeLists.txt"))[1], versions,
                      "kept.py keeps what this version writes")
        for version in versions:
            with self.subTest(version), self.copy_of(version) as kept:
                forms = {name: form(kept, name) for name in FORMS}
                gateway = kept.serve()
                self.assertIsNotNone(gateway, kit.read(kept.path("subzero.log")))
                self.check(kept)
                result = kit.run(kit.BINARY, "revoke", "--jti", "later", "--issuer", "kept", "--admin", f"127.0.0.1:{kept.admin}")
                self.assertEqual(result.returncode, 0, result.stdout)
                kept.end(gateway)
                result = kit.run(kit.BINARY, "audit", "verify", kept.path("audit"))
                self.assertEqual(result.returncode, 0, result.stdout)
                # The version before reads what this one has added.  Where that cannot be, docs/operations.md and the
                # changelog have to say so.
                self.assertEqual({name: form(kept, name) for name in FORMS}, forms)

    def test_what_each_version_has_put_into_redis(self):
        for version in os.listdir(FOLDER):
            with self.subTest(version), self.copy_of(version) as kept:
                os.remove(kept.path("state/revocations"))
                self.assertIsNotNone(kept.serve())
                kit.wait_for("the revocations", lambda k=kept: k.get("/open/a", sub="alice", jti="stolen") == 401)
                self.check(kept)

    def test_a_newer_form_refuses_the_start_and_is_left_as_it_is(self):
        for name, (pattern, newer) in FORMS.items():
            with self.subTest(name), self.copy_of("0.1.0") as kept:
                with open(kept.path(name), "r+b") as f:
                    before = re.sub(pattern, newer, f.read(), count=1)
                    f.seek(0)
                    f.write(before)
                self.assertIsNone(kept.serve())
                log = kit.read(kept.path("subzero.log"))
                self.assertIn(os.path.basename(name), log)
                self.assertRegex(log, "newer|version")
                with open(kept.path(name), "rb") as f:
                    self.assertEqual(f.read(), before)
