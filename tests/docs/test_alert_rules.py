"""The example rules for Prometheus: they parse, and every metric and label value in them exists."""

import re
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # its types are a package of their own

from tests.docs.pages import ROOT
from wakelog.http.metrics import Metrics
from wakelog.maintenance.fleet_counts import OPEN_NEEDS, SEVERITIES, add_up

RULES = ROOT / "docs" / "how-to" / "prometheus-rules.yml"


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def served() -> set[str]:
    metrics = Metrics()
    metrics.count_request("GET", "/x", 200, 0.1)
    metrics.set_fleet(add_up([]), 1)
    return set(re.findall(r"^(wakelog_\w+)", metrics.text().decode(), re.MULTILINE))


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_is_whole_and_asks_for_what_there_is(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in ("warning", "critical")
    assert rule["annotations"].keys() == {"summary", "action"}
    assert re.fullmatch(r"\d+[smh]", rule.get("for", "1m"))
    expr = rule["expr"]
    assert all(expr.count(a) == expr.count(b) for a, b in ("()", "{}", "[]"))
    asked = set(re.findall(r"wakelog_\w+", expr))
    assert asked
    assert asked <= served()
    assert set(re.findall(r'needs="([^"]+)"', expr)) <= set(OPEN_NEEDS)
    assert set(re.findall(r'severity="([^"]+)"', expr)) <= set(SEVERITIES)


def test_every_number_of_the_fleet_has_a_rule() -> None:
    asked = " ".join(rule["expr"] for rule in rules())
    for name in ("sessions{", "sessions_oldest_seconds", "sessions_failed", "flags{", "sessions_unreadable"):
        assert f"wakelog_{name}" in asked
