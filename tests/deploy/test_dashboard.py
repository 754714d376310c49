"""The dashboard of deploy/grafana: what Grafana needs of it, and that every panel asks for something that there is."""
import json
import tempfile
import unittest

import yaml

import kit

DASHBOARD = "deploy/grafana/dashboards/subzero.json"


def panels():
    return json.loads(kit.read(DASHBOARD))["panels"]


def expressions():
    """(panel's title, expression as Prometheus gets it)."""
    dashboard = json.loads(kit.read(DASHBOARD))
    asked = [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", [])]
    asked += [("annotations", a["expr"]) for a in dashboard["annotations"]["list"]]
    for title, expression in asked:
        for variable, value in (("$__rate_interval", "1m"), ("$job", "subzero"), ("$instance", ".*")):
            expression = expression.replace(variable, value)
        yield title, expression


class Dashboard(unittest.TestCase):
    def test_it_is_provisioned_as_compose_mounts_it(self):
        source = kit.load("deploy/grafana/provisioning/datasources/prometheus.yml")["datasources"][0]
        provider = kit.load("deploy/grafana/provisioning/dashboards/subzero.yml")["providers"][0]
        grafana = kit.load("docker-compose.yml")["services"]["grafana"]
        self.assertIn(f"./deploy/grafana/dashboards:{provider['options']['path']}:ro", grafana["volumes"])
        self.assertIn(source["url"].split("/")[2].split(":")[0], kit.load("docker-compose.yml")["services"])
        for panel in panels():
            if panel["type"] != "row":
                self.assertEqual(panel["datasource"], {"type": "prometheus", "uid": source["uid"]}, panel["title"])
                for target in panel["targets"]:
                    self.assertEqual(target["datasource"], panel["datasource"])

    def test_panels_have_ids_and_places_of_their_own(self):
        taken, ids = set(), set()
        for panel in panels():
            place = panel["gridPos"]
            self.assertLessEqual(place["x"] + place["w"], 24)
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertFalse(taken & cells, f"{panel['title']} lies over another panel")
            taken |= cells
            self.assertNotIn(panel["id"], ids)
            ids.add(panel["id"])
            self.assertTrue(panel["title"])
            self.assertIn(panel["type"], ("row", "timeseries", "stat", "state-timeline"))

    def test_prometheus_can_read_every_expression(self):
        kit.needs("promtool")
        rules = [{"record": f"x:{i}", "expr": expression} for i, (_, expression) in enumerate(expressions())]
        self.assertGreater(len(rules), 40)
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as f:
            yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}, f)
            f.flush()
            result = kit.run("promtool", "check", "rules", f.name)
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_each_metric_and_label_exists(self):
        for title, expression in expressions():
            with self.subTest(title):
                self.assertEqual(kit.mistakes_of(expression), [])

    def test_what_operators_were_promised_is_there(self):
        text = " ".join(expression for _, expression in expressions())
        for metric in ("subzero_requests_total", "subzero_errors_total", "subzero_request_duration_seconds_bucket",
                       "subzero_cache_hits_total", "subzero_breaker_state", "subzero_ratelimit_decisions_total",
                       "job:subzero_revocation_seconds:p99_5m", "subzero_audit_lost_total",
                       "subzero_threat_signals_total", "process_resident_memory_bytes"):
            self.assertIn(metric, text)

    def test_the_hit_ratio_has_its_aim_and_its_alarm(self):
        steps = [[step["value"] for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]
                 for panel in panels() if "job:subzero_token_hits:ratio_rate5m" in json.dumps(panel)]
        self.assertEqual(steps, [[None, 0.9, 0.95]] * 2)
