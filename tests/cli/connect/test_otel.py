"""`wakelog otel` as a person runs it."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.receiver import Reaction, receiving
from wakelog import otlp
from wakelog.cli.demo import build


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    with wakelog.open(folder) as store:
        build("fix-bug", store.engine, at_us=1_794_733_200_000_000)
    return folder


def test_a_session_goes_to_a_collector_and_the_answer_says_how_much(cli: Cli, store: Path) -> None:
    with receiving() as collector:
        done = cli("otel", "export", "fix-bug", "--to", collector.url, "--store", str(store), "--json")
    assert done.code == 0, done.err
    assert (done.data["sessions"], done.data["spans"], done.data["rejected"]) == (1, 36, 0)
    assert len(collector.got) == 1


def test_all_sessions_go_to_a_file_once_unless_forced(cli: Cli, store: Path, tmp_path: Path) -> None:
    path = tmp_path / "spans.jsonl"
    asked = ("otel", "export", "--all", "--to", str(path), "--store", str(store))
    assert cli(*asked).code == 0
    documents = [json.loads(line) for line in path.read_text().splitlines()]
    assert [sum(1 for _ in otlp.spans_in(d)) for d in documents] == [36, 4]
    again = cli(*asked)
    assert again.code != 0
    assert "already exists" in again.err
    assert cli(*asked, "--force").code == 0


def test_what_the_collector_rejects_is_said_and_is_the_exit_code(cli: Cli, store: Path) -> None:
    told = Reaction(200, {"Content-Type": "application/json"}, b'{"partialSuccess":{"rejectedSpans":3}}')
    with receiving(lambda _: told) as collector:
        done = cli("otel", "export", "try-refresh", "--to", collector.url, "--store", str(store))
    assert done.code == 1
    assert "rejected 3 spans" in done.out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("fix-bug", "--all"), "name a session, or use --all"),
        (("no-such",), "no-such"),
        (("fix-bug", "--protocol", "http/json"), "--protocol is for a collector"),
        (("fix-bug", "--to", "http://user:secret@127.0.0.1"), "not the address of a server"),
    ],
)
def test_bad_calls_are_told_what_is_wrong(cli: Cli, store: Path, args: tuple[str, ...], said: str) -> None:
    done = cli("otel", "export", *args, "--store", str(store))
    assert done.code != 0
    assert said in done.err


SENDS = """
import sys
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(sys.argv[1] + "/v1/traces", timeout=120)))
tracer = provider.get_tracer("agent")
about = {"gen_ai.conversation.id": "killed"}
with tracer.start_as_current_span("invoke_agent a", attributes={"gen_ai.operation.name": "invoke_agent", **about}):
    for number in range(5):
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"t{number}", **about}
        with tracer.start_as_current_span(f"execute_tool t{number}", attributes=tool):
            pass
provider.shutdown()
"""


@contextmanager
def receiver(store: Path, **how: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-m", "wakelog", "otel", "serve", "--port", "0", "--ndjson", "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL, **how) as process:
        try:
            assert process.stdout is not None
            yield process, json.loads(process.stdout.readline())["url"]
        finally:
            process.kill()


@pytest.mark.slow
def test_a_receiver_that_is_killed_loses_nothing_that_it_took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    for name in [name for name in os.environ if name.startswith("OTEL_")]:
        monkeypatch.delenv(name)  # what may switch the sender off
    store = tmp_path / "store"
    with receiver(store) as (process, url):
        subprocess.run([sys.executable, "-c", SENDS, url], check=True, timeout=120)
        process.send_signal(signal.SIGKILL)
        process.wait(60)
    # The first may have brought them in already, or have been killed between that and saying so.
    with receiver(store) as (process, _), wakelog.open(store) as opened:
        events = (entry.kind for _, entry in opened.follow(after={}, timeout_s=60))
        assert "turn.ended" in events
        process.send_signal(signal.SIGTERM)
        process.wait(60)
    with wakelog.open(store) as opened:
        session = opened.resume("otel-killed")
        assert [row.tool for row in session.calls.table()] == [f"t{number}" for number in range(5)]
        assert session.verify().ok


def test_a_receiver_for_others_wants_a_token(cli: Cli, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WAKELOG_OTEL_TOKEN", raising=False)
    done = cli("otel", "serve", "--host", "0.0.0.0", "--store", str(store))
    assert done.code != 0
    assert "WAKELOG_OTEL_TOKEN" in done.err
