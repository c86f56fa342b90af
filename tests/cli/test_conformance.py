"""`wakelog conformance` as a user sees it."""

from collections.abc import Iterator

import pytest

from tests.cli.conftest import Cli
from tests.conformance.broken import Serving, serving_broken
from tests.conformance.faults import FAULTS


@pytest.fixture
def served() -> Iterator[Serving]:
    with serving_broken("memory:") as serving:
        yield serving


def test_a_server_that_conforms_is_told_so(cli: Cli, served: Serving) -> None:
    result = cli("conformance", served.url, "--key", served.key, "--only", "conditional")
    assert result.code == 0
    assert result.lines == [
        "✔ conditional etag-saves-the-answer",
        "✔ conditional etag-moves-with-the-head",
        "2 passed, 0 failed, 0 skipped",
    ]


def test_a_fault_is_told_with_its_rule_and_request_and_without_the_key(
    cli: Cli, served: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    served.broken.fault = FAULTS["lease-fences"](served.broken.keys)
    monkeypatch.setenv("WAKELOG_KEY", served.key)
    result = cli("conformance", served.url, "--only", "lease-fences")
    assert result.code == 1
    mark, rule, fault, request, total = result.lines
    assert mark == "✗ leases      lease-fences"
    assert rule.startswith("  If `guard` is not the newest epoch, the append is refused with 409 `fenced`")
    assert fault.startswith("  expected 409 fenced, got 200: ")
    assert request.startswith("  POST /v1/sessions/s_")
    assert '"guard": 1' in request
    assert total == "0 passed, 1 failed, 0 skipped"
    assert served.key not in result.out + result.err


def test_the_answer_for_programs(cli: Cli, served: Serving) -> None:
    result = cli(
        "conformance", served.url, "--key", served.key, "--only", "pages", "--only", "lists-are-apart", "--json"
    )
    assert result.json["schema"] == "wakelog.conformance/1"
    assert (result.data["passed"], result.data["failed"], result.data["skipped"]) == (3, 0, 1)
    assert result.data["checks"][-1]["why"].startswith("needs a second key")
    lines = cli("conformance", served.url, "--key", served.key, "--only", "pages", "--ndjson").records
    assert {line["status"] for line in lines} == {"passed"}


def test_the_list_needs_no_server(cli: Cli) -> None:
    result = cli("conformance", "--list", "--only", "tail")
    assert result.code == 0
    assert result.lines[0] == "tail        tail-sends-what-is-stored"
    assert len(cli("conformance", "--list", "--json").data) > 60


def test_what_is_wrong_with_the_call_is_told(cli: Cli) -> None:
    assert "name the server" in cli("conformance").err
    assert "no group or check nope" in cli("conformance", "http://127.0.0.1:1", "--only", "nope").err
    assert cli("conformance", "http://127.0.0.1:1").code not in (0, 1)
