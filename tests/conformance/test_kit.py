"""The kit: our server passes it, and of servers with one fault each it names the fault."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import wakelog.conformance
from tests.conformance.broken import Forward, Serving, WholeAnswer, WholeRequest, serving_broken
from tests.conformance.faults import ALSO, FAULTS
from wakelog.conformance import all_checks, run
from wakelog.conformance.kit import CAPABILITIES, GROUPS
from wakelog.conformance.wire import WireClient
from wakelog.errors import InvalidInputError, NotAllowedError, UnavailableError

GROUP_OF = {each.name: each.group for each in all_checks()}


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with serving_broken("memory:") as serving:
        yield serving


def _failed(served: Serving, *only: str) -> dict[str, str]:
    results = run(served.url, served.key, other_key=served.other_key, only=only, timeout_s=60)
    return {each.check: f"{each.expected} | {each.got} | {each.request}" for each in results if each.status != "passed"}


def test_our_server_on_disk_passes_every_check(tmp_path: Path) -> None:
    with serving_broken(str(tmp_path)) as serving:
        assert _failed(serving) == {}


@pytest.mark.parametrize("check", FAULTS)
def test_a_fault_is_named(served: Serving, check: str) -> None:
    _names_the_fault(served, check, GROUP_OF[check])


@pytest.mark.slow
@pytest.mark.parametrize("check", FAULTS)
def test_a_fault_is_named_and_few_other_checks_fail(served: Serving, check: str) -> None:
    _names_the_fault(served, check)


def _names_the_fault(served: Serving, check: str, *only: str) -> None:
    served.broken.fault = FAULTS[check](served.broken.keys)
    try:
        failed = _failed(served, *only)
    finally:
        served.broken.fault = None
    assert check in failed
    assert set(failed) <= {check} | ALSO[check], failed
    expected, got, request = failed[check].split(" | ", 2)
    assert expected
    assert got
    assert request.startswith(("GET ", "POST ", "DELETE "))
    assert served.key not in failed[check]


def test_without_a_second_key_namespaces_are_skipped(served: Serving) -> None:
    results = list(run(served.url, served.key, only=["namespaces"]))
    assert {each.status for each in results} == {"skipped"}
    assert all("second key" in each.why for each in results)


def test_what_is_not_offered_is_skipped_where_it_may_be_missing(served: Serving) -> None:
    async def nothing(request: WholeRequest, forward: Forward) -> WholeAnswer | None:
        if request.path.rpartition("/")[2] in ("lease", "tail", "fork"):
            problem = b'{"kind": "no-such-route", "status": 404}'
            return WholeAnswer(404, {"content-type": "application/problem+json"}, problem)
        return None

    served.broken.fault = nothing
    try:
        found = {each.check: each.status for each in run(served.url, served.key, only=["leases", "tail", "moving"])}
    finally:
        served.broken.fault = None
    assert found["lease-fences"] == found["tail-resumes"] == "skipped"
    assert found["fork-is-apart"] == "failed", "forks are no option"


def test_a_check_cleans_up(served: Serving) -> None:
    assert list(run(served.url, served.key, only=["sessions", "moving"]))
    rows = WireClient(served.url, served.key).ask("GET", "/v1/sessions?limit=1000").ok()["rows"]
    assert not [row["name"] for row in rows if row["status"] != "deleted"]


def test_a_key_that_is_not_valid_is_told_at_once(served: Serving) -> None:
    with pytest.raises(NotAllowedError, match="does not accept the key"):
        list(run(served.url, "wrong"))
    with pytest.raises(NotAllowedError, match="the other key"):
        list(run(served.url, served.key, other_key="wrong"))


def test_who_is_not_there_is_told_at_once() -> None:
    with pytest.raises(UnavailableError):
        list(run("http://127.0.0.1:1", "key"))
    with pytest.raises(InvalidInputError, match="not the address"):
        list(run("ftp://host", "key"))
    with pytest.raises(InvalidInputError, match="no group or check nope"):
        list(run("http://127.0.0.1:1", "key", only=["nope"]))


def test_every_group_has_checks_and_every_name_is_one() -> None:
    checks = all_checks()
    assert {each.group for each in checks} == set(GROUPS)
    assert {each.needs for each in checks} - {""} == set(CAPABILITIES)
    assert len({each.name for each in checks}) == len(checks)
    assert len({each.rule for each in checks}) == len(checks)


def test_the_kit_imports_nothing_of_ours_but_the_errors() -> None:
    folder = Path(wakelog.conformance.__file__).parent
    found = set()
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {name for name in names if name.startswith("wakelog")}
    assert {name for name in found if not name.startswith("wakelog.conformance")} == {"wakelog.errors"}
