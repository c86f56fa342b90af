"""`wakelog webhooks` as a person runs it."""

import json
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.http.asking import Asker
from tests.receiver import Reaction, receiving
from wakelog import events as ev
from wakelog.http.server import serving
from wakelog.http.state import Settings
from wakelog.webhooks.hooks_file import TOPICS
from wakelog.webhooks.signature import make_secret


def test_a_person_adds_tries_runs_lists_and_removes(
    cli: Cli,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    secret = make_secret()
    monkeypatch.setenv("HOOK", secret)
    store = str(tmp_path / "store")
    with wakelog.open(store) as opened:
        session = opened.session("s")
    with receiving() as receiver:
        added = cli(
            "webhooks", "add", "ops", f"{receiver.url}/x?token=hunter2", "--secret", "env:HOOK", "--store", store
        )
        assert added.code == 0, added.err
        assert cli("webhooks", "test", "ops", "--store", store).code == 0
        assert cli("webhooks", "run", "--once", "--store", store).code == 0
        with wakelog.open(store) as opened:
            opened.resume(session.id).append(ev.BudgetReached(limit="tokens"))
        sent = cli("webhooks", "run", "--once", "--store", store, "--json")
        assert [(s["type"], s["ok"]) for s in sent.data] == [("budget.reached", True)]
        receiver.answer = lambda _: Reaction(500)
        assert cli("webhooks", "test", "ops", "--store", store).code != 0
    assert [json.loads(got.body)["type"] for got in receiver.got][:2] == ["test", "budget.reached"]
    listed = cli("webhooks", "ls", "--store", store, "--json")
    assert (listed.data[0]["sent"], listed.data[0]["on"]) == (1, list(TOPICS))
    people = cli("webhooks", "ls", "--store", store)
    for shown in (added, sent, listed, people):
        assert "hunter2" not in shown.out + shown.err
        assert secret not in shown.out + shown.err
    assert cli("webhooks", "rm", "ops", "--store", store).code == 0
    assert "no webhook" in cli("webhooks", "run", "--store", store).err


def test_a_refused_message_is_shown_and_skipped_from_the_command_line_and_over_http(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAKELOG_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("HOOK", make_secret())
    store = str(tmp_path / "store")
    wakelog.open(store).close()
    with receiving(lambda _: Reaction(400)) as receiver:
        cli("webhooks", "add", "ops", f"{receiver.url}/x", "--secret", "env:HOOK", "--store", store)
        cli("webhooks", "run", "--once", "--store", store)
        with wakelog.open(store) as opened:
            ids = [opened.session(name).id for name in ("one", "two")]
            for name in ("one", "two"):
                opened.session(name).append(ev.BudgetReached(limit="tokens"))
        assert cli("webhooks", "run", "--once", "--store", store).code == 1
    assert "does not accept budget.reached" in cli("webhooks", "ls", "--store", store).out
    skipped = cli("webhooks", "skip", "ops", "one", "--store", store)
    assert skipped.code == 0, skipped.err
    assert cli("webhooks", "skip", "ops", "one", "--store", store).code == 3
    assert "no webhook 'none'" in cli("webhooks", "skip", "none", "one", "--store", store).err
    with serving(Settings(url=store, rate=0)) as running:
        asker = Asker(running.url, running.key)
        listed = asker.ask("GET", "/v1/webhooks").json["hooks"]
        assert listed == cli("webhooks", "ls", "--store", store, "--json").data
        assert [each["session"] for each in listed[0]["refused"]] == [ids[1]]
        assert asker.ask("POST", "/v1/webhooks/ops/skip", body={"session": "two"}).json["event"] == 2
        assert asker.ask("POST", "/v1/webhooks/ops/skip", body={"session": "two"}).kind == "nothing-refused"
        assert asker.ask("GET", "/v1/webhooks").json["hooks"][0]["skipped"] == 2
