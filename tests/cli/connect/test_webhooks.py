"""`wakelog webhooks` as a person runs it."""

import json
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.receiver import Reaction, receiving
from wakelog import events as ev
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
