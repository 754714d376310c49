"""The rules and alerts of deploy/prometheus: valid, about metrics that exist, tested each, explained each."""
import re
import unittest

import kit


def rules():
    return [rule for file in ("recording.yml", "alerts.yml")
            for group in kit.load("deploy/prometheus", file)["groups"] for rule in group["rules"]]


def alerts():
    return [rule for rule in rules() if "alert" in rule]


def anchor(heading):
    """As GitHub makes them."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


class Rules(unittest.TestCase):
    def test_promtool_accepts_configuration_and_rules(self):
        kit.needs("promtool")
        result = kit.run("promtool", "check", "config", "deploy/prometheus/prometheus.yml")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertIn("2 rule files found", result.stdout)

    def test_each_alert_fires_on_its_condition_and_not_before(self):
        kit.needs("promtool")
        result = kit.run("promtool", "test", "rules", "tests/deploy/alerts_test.yml")
        self.assertEqual(result.returncode, 0, result.stdout)

    def test_each_alert_is_among_those_tests_with_and_without_cause(self):
        fires, silent = set(), set()
        for test in kit.load("tests/deploy/alerts_test.yml")["tests"]:
            for case in test.get("alert_rule_test", []):
                (fires if case["exp_alerts"] else silent).add(case["alertname"])
        names = {alert["alert"] for alert in alerts()}
        self.assertEqual(names, fires)
        self.assertEqual(names, silent)

    def test_each_metric_and_label_exists(self):
        for rule in rules():
            self.assertEqual(kit.mistakes_of(rule["expr"]), [], rule)

    def test_each_recorded_name_is_used_and_recorded(self):
        recorded = {rule["record"] for rule in rules() if "record" in rule}
        texts = "\n".join(rule["expr"] for rule in rules()) + kit.read("deploy/grafana/dashboards/subzero.json")
        used = set(re.findall(r"\bjob:subzero_[a-z0-9_:]+", texts))
        self.assertEqual(recorded, used)

    def test_each_alert_says_what_it_means_and_what_to_do(self):
        headings = {anchor(h) for h in re.findall(r"^#+ (.*)$", kit.read("docs/operations.md"), flags=re.M)}
        for alert in alerts():
            with self.subTest(alert["alert"]):
                notes = alert["annotations"]
                self.assertTrue(notes["summary"] and notes["description"])
                self.assertIn(alert["labels"]["severity"], ("page", "ticket"))
                file, _, fragment = notes["runbook"].partition("#")
                self.assertEqual(file, "docs/operations.md")
                self.assertEqual(fragment, alert["alert"].lower())
                self.assertIn(fragment, headings)

    def test_the_checker_finds_what_does_not_exist(self):
        self.assertEqual(kit.mistakes_of('rate(subzero_requests_total{route="a"}[5m])'), [])
        self.assertEqual(kit.mistakes_of("sum by (le) (subzero_request_duration_seconds_bucket)"), [])
        for expression in ("subzero_requests", "subzero_requests_total_bucket", "subzero_request_duration_seconds",
                           'subzero_requests_total{path="/"}', "sum by (subject) (subzero_requests_total)"):
            self.assertEqual(len(kit.mistakes_of(expression)), 1, expression)
