"""deploy/kubernetes without a cluster: every field is one that its kind has, names lead somewhere, nothing runs as root,
and what the pods are given as configuration is what `subzero check` accepts."""
import os
import re
import shutil
import tempfile
import unittest

import yaml

import kit

FOLDER = "deploy/kubernetes"

# The part of the API that is used here.  str, int, bool: a value; [x]: a list of x; ANY: names of one's own.
ANY = object()
META = {"name": str, "namespace": str, "labels": ANY, "annotations": ANY}
SELECTOR = {"matchLabels": ANY}
PORT = (str, int)
PROBE = {"httpGet": {"path": str, "port": PORT}, "periodSeconds": int, "timeoutSeconds": int, "failureThreshold": int}
CONTAINER = {
    "name": str, "image": str, "args": [str],
    "env": [{"name": str, "value": str, "valueFrom": {"fieldRef": {"fieldPath": str}}}],
    "ports": [{"name": str, "containerPort": int}],
    "securityContext": {"allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool, "capabilities": {"drop": [str]}},
    "startupProbe": PROBE, "readinessProbe": PROBE, "livenessProbe": PROBE,
    "lifecycle": {"preStop": {"exec": {"command": [str]}}},
    "resources": {"requests": {"cpu": str, "memory": str}, "limits": {"cpu": str, "memory": str}},
    "volumeMounts": [{"name": str, "mountPath": str, "readOnly": bool}],
}
POD = {
    "automountServiceAccountToken": bool, "enableServiceLinks": bool, "terminationGracePeriodSeconds": int,
    "securityContext": {"runAsNonRoot": bool, "runAsUser": int, "runAsGroup": int, "fsGroup": int,
                        "seccompProfile": {"type": str}},
    "topologySpreadConstraints": [{"maxSkew": int, "topologyKey": str, "whenUnsatisfiable": str,
                                   "labelSelector": SELECTOR}],
    "containers": [CONTAINER],
    "volumes": [{"name": str, "configMap": {"name": str}, "secret": {"secretName": str, "defaultMode": int},
                 "emptyDir": {"sizeLimit": str}}],
}
PEER = {"namespaceSelector": ANY, "podSelector": SELECTOR, "ipBlock": {"cidr": str, "except": [str]}}
RULE_PORTS = [{"port": PORT, "protocol": str}]
KINDS = {
    ("v1", "Namespace"): {},
    ("v1", "Service"): {"spec": {"selector": ANY, "clusterIP": str, "publishNotReadyAddresses": bool,
                                 "ports": [{"name": str, "port": int, "targetPort": PORT}]}},
    ("v1", "Secret"): {"type": str, "stringData": ANY},
    ("apps/v1", "Deployment"): {"spec": {
        "selector": SELECTOR, "strategy": {"rollingUpdate": {"maxUnavailable": int, "maxSurge": int}},
        "template": {"metadata": META, "spec": POD}}},
    ("autoscaling/v2", "HorizontalPodAutoscaler"): {"spec": {
        "scaleTargetRef": {"apiVersion": str, "kind": str, "name": str}, "minReplicas": int, "maxReplicas": int,
        "metrics": [{"type": str, "resource": {"name": str, "target": {"type": str, "averageUtilization": int}}}],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": int,
                                   "policies": [{"type": str, "value": int, "periodSeconds": int}]}}}},
    ("policy/v1", "PodDisruptionBudget"): {"spec": {"maxUnavailable": int, "selector": SELECTOR}},
    ("networking.k8s.io/v1", "NetworkPolicy"): {"spec": {
        "podSelector": SELECTOR, "policyTypes": [str],
        "ingress": [{"from": [PEER], "ports": RULE_PORTS}], "egress": [{"to": [PEER], "ports": RULE_PORTS}]}},
    ("monitoring.coreos.com/v1", "ServiceMonitor"): {"spec": {
        "jobLabel": str, "selector": SELECTOR, "endpoints": [{"port": str, "path": str, "interval": str}]}},
}
for kind in KINDS.values():
    kind.update({"apiVersion": str, "kind": str, "metadata": META})


def unfit(value, shape, at):
    """Where a value is not of its shape."""
    if shape is ANY:
        return [] if isinstance(value, dict) else [f"{at}: not a mapping"]
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{at}: not a mapping"]
        wrong = [f"{at}.{key}: no such field" for key in value if key not in shape]
        return wrong + [w for key in value if key in shape for w in unfit(value[key], shape[key], f"{at}.{key}")]
    if isinstance(shape, list):
        if not isinstance(value, list) or not value:
            return [f"{at}: not a list, or empty"]
        return [w for i, item in enumerate(value) for w in unfit(item, shape[0], f"{at}[{i}]")]
    kinds = shape if isinstance(shape, tuple) else (shape,)
    return [] if type(value) in kinds else [f"{at}: {value!r} is not {kinds}"]


def documents():
    for name in sorted(os.listdir(kit.path(FOLDER))):
        if name not in ("kustomization.yaml", "subzero.yaml"):
            for document in yaml.safe_load_all(kit.read(FOLDER, name)):
                yield name, document


def one(kind):
    return [d for _, d in documents() if d["kind"] == kind][0]


def container():
    return one("Deployment")["spec"]["template"]["spec"]["containers"][0]


class Kubernetes(unittest.TestCase):
    def test_every_field_is_one_of_its_kind(self):
        for name, document in documents():
            shape = KINDS[document["apiVersion"], document["kind"]]
            self.assertEqual(unfit(document, shape, name), [])

    def test_the_checker_finds_what_is_wrong(self):
        deployment = one("Deployment")
        deployment["spec"]["template"]["spec"]["securityContext"]["runAsNonRoot"] = "yes"
        deployment["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}
        self.assertEqual(len(unfit(deployment, KINDS["apps/v1", "Deployment"], "d")), 2)

    def test_kustomization_names_every_file_but_the_template(self):
        kustomization = kit.load(FOLDER, "kustomization.yaml")
        named = set(kustomization["resources"]) | set(kustomization["configMapGenerator"][0]["files"])
        there = set(os.listdir(kit.path(FOLDER))) - {"kustomization.yaml"}
        # It needs the operator's types.
        self.assertIn("# - servicemonitor.yaml", kit.read(FOLDER, "kustomization.yaml"))
        self.assertEqual(there - named, {"secret.template.yaml", "servicemonitor.yaml"})
        self.assertEqual(named - there, set())

    def test_names_and_labels_lead_somewhere(self):
        pod = one("Deployment")["spec"]["template"]
        labels = pod["metadata"]["labels"].items()
        for _, document in documents():
            spec = document.get("spec", {})
            if document["kind"] == "ServiceMonitor":
                scraped = [d for _, d in documents() if d["kind"] == "Service" and
                           spec["selector"]["matchLabels"].items() <= d["metadata"]["labels"].items()]
                self.assertEqual([d["metadata"]["name"] for d in scraped], ["subzero-admin"])
                self.assertIn(spec["endpoints"][0]["port"], [p["name"] for p in scraped[0]["spec"]["ports"]])
                self.assertEqual(scraped[0]["metadata"]["labels"][spec["jobLabel"]], "subzero")
                continue
            for selector in filter(None, (spec.get("selector"), spec.get("podSelector"))):
                self.assertLessEqual(selector.get("matchLabels", selector).items(), labels, document["metadata"])
        ports = {p["name"] for p in container()["ports"]}
        for _, document in documents():
            if document["kind"] == "Service":
                for port in document["spec"]["ports"]:
                    self.assertIn(port["targetPort"], ports)
        self.assertEqual({v["name"] for v in pod["spec"]["volumes"]}, {m["name"] for m in container()["volumeMounts"]})
        generated = kit.load(FOLDER, "kustomization.yaml")["configMapGenerator"][0]["name"]
        for volume in pod["spec"]["volumes"]:
            self.assertEqual(volume.get("configMap", {}).get("name", generated), generated)
            self.assertEqual(volume.get("secret", {}).get("secretName"), "subzero" if "secret" in volume else None)
        self.assertEqual(one("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]["name"],
                         one("Deployment")["metadata"]["name"])

    def test_pods_meet_the_restricted_standard(self):
        self.assertEqual(one("Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted")
        pod = one("Deployment")["spec"]["template"]["spec"]
        self.assertIs(pod["securityContext"]["runAsNonRoot"], True)
        self.assertEqual(pod["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"})
        self.assertIs(pod["automountServiceAccountToken"], False)
        self.assertEqual(container()["securityContext"], {"allowPrivilegeEscalation": False,
                                                          "readOnlyRootFilesystem": True,
                                                          "capabilities": {"drop": ["ALL"]}})
        user = re.search(r"^USER (\d+):(\d+)$", kit.read("deploy/Dockerfile"), flags=re.M)
        context = pod["securityContext"]
        self.assertEqual([context["runAsUser"], context["runAsGroup"], context["fsGroup"]],
                         [int(user[1]), int(user[2]), int(user[2])])

    def test_probes_ask_what_kubernetes_means_by_them(self):
        self.assertEqual(container()["readinessProbe"]["httpGet"], {"path": "/readyz", "port": "admin"})
        self.assertEqual(container()["livenessProbe"]["httpGet"], {"path": "/livez", "port": "admin"})

    def test_pods_have_time_to_drain(self):
        drain = int(re.fullmatch(r"(\d+)s", kit.load(FOLDER, "subzero.yaml")["limits"]["drain"])[1])
        sleep = int(container()["lifecycle"]["preStop"]["exec"]["command"][1])
        grace = one("Deployment")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        self.assertGreaterEqual(grace, sleep + drain + 5)
        # Out of the endpoints before connections are refused.
        self.assertGreaterEqual(sleep, 2 * container()["readinessProbe"]["periodSeconds"])

    def test_the_template_holds_no_secret_but_every_one_that_is_read(self):
        keys = set(one("Secret")["stringData"])
        for value in one("Secret")["stringData"].values():
            self.assertEqual(value, "<subzero key new>")
        read = re.findall(r"/run/secrets/subzero/([a-z-]+)", kit.read(FOLDER, "subzero.yaml"))
        self.assertEqual(set(read), keys)

    def test_egress_reaches_what_the_pods_are_told_to_ask(self):
        policy = one("NetworkPolicy")["spec"]
        allowed = set()
        for rule in policy["egress"]:
            for peer in rule["to"]:
                names = peer.get("namespaceSelector", {}).get("matchLabels", {})
                for port in rule["ports"]:
                    allowed.add((names.get("kubernetes.io/metadata.name"), port["port"]))
        for variable in container()["env"]:
            for namespace, port in re.findall(r"\.([a-z]+)\.svc:(\d+)", variable.get("value", "")):
                self.assertIn((namespace, int(port)), allowed)

    def test_the_configuration_is_accepted(self):
        kit.needs(kit.BINARY)
        environment = {e["name"]: e.get("value", "10.1.2.3") for e in container()["env"]}
        with tempfile.TemporaryDirectory() as folder:
            text = kit.read(FOLDER, "subzero.yaml")
            text = text.replace("/run/secrets/subzero", folder).replace("/var/lib/subzero", folder)
            for name in one("Secret")["stringData"]:
                with open(os.path.join(folder, name), "w", encoding="ascii") as f:
                    f.write(kit.run(kit.BINARY, "key", "new").stdout)
                os.chmod(f.name, 0o440)
            with open(os.path.join(folder, "subzero.yaml"), "w", encoding="utf-8") as f:
                f.write(text)
            result = kit.run(kit.BINARY, "check", "-c", f.name, env=environment)
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertNotIn("warning", result.stdout)

    def test_kustomize_builds_it(self):
        for command in (["kustomize", "build"], ["kubectl", "kustomize"]):
            if shutil.which(command[0]):
                self.assertEqual(kit.run(*command, FOLDER).returncode, 0)
                return
        self.skipTest("neither kustomize nor kubectl is here")
