"""The official conformance runner, against our server, and against another's behind our proxy."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

import wakelog
from tests.mcp.foreign.packages import Packages
from tests.mcp.foreign.processes import WAKELOG, listening
from tests.ports import free_port

pytestmark = pytest.mark.slow
versions = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])

PASSES = {
    "2025-11-25": {
        "server-initialize", "ping", "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection",
        "server-session-lifecycle", "server-sse-multiple-streams",
    },
    "2026-07-28": {
        "tools-list", "resources-list", "prompts-list", "dns-rebinding-protection", "server-sse-multiple-streams",
        "sep-2164-resource-not-found", "caching", "http-header-validation",
    },
}  # fmt: skip
"""What a server of any product can pass. The others call tools and read resources that only a test server has."""

VACUOUS = {
    "2025-11-25": {"tools-call-simple-text", "tools-call-error", "resources-subscribe", "resources-unsubscribe"},
    "2026-07-28": {
        "tools-call-simple-text", "tools-call-error", "tasks-status-notifications",
        "input-required-result-missing-input-response", "input-required-result-unsupported-methods",
        "input-required-result-ignore-extra-params", "input-required-result-validate-input",
    },
}  # fmt: skip
"""These pass without the tools they are about, so they prove nothing."""

STATELESS_FIXTURES = {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"}
"""Checks of `server-stateless` that call a tool of the test server."""

Results = dict[str, list[tuple[str, str]]]


def conformance(packages: Packages, url: str, version: str, out: Path) -> Results:
    """Each scenario's checks with their status, in the order in which they were made."""
    command = [*packages.conformance, "server", "--url", url, "--requirements", version, "-o", str(out)]
    done = subprocess.run(command, cwd=out.parent, capture_output=True, text=True, timeout=400, check=False)
    results: Results = {}
    for folder in out.glob("server-*"):
        name = folder.name.removeprefix("server-").rsplit("-", 6)[0]  # what follows is a time
        checks = folder / "checks.json"  # not there when the scenario itself gave up
        found = json.loads(checks.read_text()) if checks.exists() else [{"id": "gave up", "status": "FAILURE"}]
        results[name] = [(c["id"], c["status"]) for c in found]
    assert len(results) > 30, done.stdout[-2000:] + done.stderr[-2000:]
    return results


def passed(results: Results) -> set[str]:
    return {name for name, checks in results.items() if not any(status == "FAILURE" for _, status in checks)}


@versions
def test_our_server_passes_what_a_product_can_pass(packages: Packages, tmp_path: Path, version: str) -> None:
    port = free_port()
    command = [*WAKELOG, "mcp", "--store", str(tmp_path / "store"), "--http", f"127.0.0.1:{port}"]
    with listening(command, port):
        results = conformance(packages, f"http://127.0.0.1:{port}/mcp", version, tmp_path / "out")
    assert passed(results) == PASSES[version] | VACUOUS[version]
    assert all(results[name] for name in PASSES[version])
    if version == "2026-07-28":
        failed = {check for check, status in results["server-stateless"] if status == "FAILURE"}
        assert failed == STATELESS_FIXTURES
        assert len(results["server-stateless"]) > 25


@contextmanager
def everything(packages: Packages) -> Iterator[int]:
    port = free_port()
    with listening(packages.server("everything", "streamableHttp"), port, PORT=str(port)):
        yield port


@contextmanager
def fixture(packages: Packages) -> Iterator[int]:
    """A server that has most of what the scenarios call, so that they reach through the proxy and back."""
    port = free_port()
    script = Path(__file__).with_name("fixture_server.py")
    with listening([sys.executable, str(script), str(port)], port, PYTHONPATH=os.pathsep.join(sys.path)):
        yield port


@versions
@pytest.mark.parametrize("server", [everything, fixture])
def test_behind_the_proxy_every_scenario_ends_as_without_it(
    packages: Packages, tmp_path: Path, version: str, server: object
) -> None:
    with ExitStack() as stack:
        # One server each, in the same state when its run begins.
        bare, behind = (stack.enter_context(server(packages)) for _ in range(2))  # type: ignore[operator]
        front = free_port()
        command = [*WAKELOG, "proxy", "--store", str(tmp_path / "store"), "--into", "rec"]
        command += ["--url", f"http://127.0.0.1:{behind}/mcp", "--port", str(front)]
        stack.enter_context(listening(command, front))
        without = conformance(packages, f"http://127.0.0.1:{bare}/mcp", version, tmp_path / "bare")
        through = conformance(packages, f"http://127.0.0.1:{front}/mcp", version, tmp_path / "through")
    assert through == without
    if server is fixture:
        assert len(passed(without)) >= 20
    with wakelog.open(tmp_path / "store") as store:
        session = store.resume("rec")
        asked = {e.body["action"]: e.body["tool"] for e in session.events(kind="action.requested")}
        ended = {e.body["action"] for e in session.events(kind=("action.succeeded", "action.failed"))}
        assert set(session.state().pending_actions) == asked.keys() - ended
        if (server, version) != (everything, "2026-07-28"):  # which it does not speak, so no call gets through
            assert "test_simple_text" in asked.values()
            assert len(ended) >= 5
        assert session.verify().ok
