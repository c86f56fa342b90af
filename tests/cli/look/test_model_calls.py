"""Model calls that instruments recorded, as a person sees them."""

from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli
from tests.instruments.apis import ANSWER, APIS, CALL, QUESTION, RESULT
from tests.runtime.providers import provider

CHAT = APIS["chat"]


def test_show_tells_a_request_by_its_messages_and_an_answer_by_its_calls_and_usage(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wakelog.instruments.writer_thread.WAIT_S", 120.0)
    url = str(tmp_path / "store")
    with provider() as remote, wakelog.open(url) as store:
        wakelog.instrument("openai", store=store)
        remote.plays += [CHAT.says(call=True), CHAT.says(ANSWER)]
        history = CHAT.first()
        CHAT.ask(remote, history)
        CHAT.ask(remote, history + CHAT.then())
        wakelog.uninstrument()
        [name] = [head.name for head in store.sessions()]
    turn = cli("show", f"{name}@1", "--store", url).out
    assert '"shown"' not in turn
    requests = [line for line in turn.splitlines() if "is shown e1" in line]
    assert len(requests) == 2
    asked = cli("show", name, requests[-1].split()[0], "--store", url).out
    assert f"user         {QUESTION}" in asked
    assert f"{CALL[1]}  " in asked
    assert RESULT in asked
    ended = cli("show", name, "e6", "--store", url).out
    assert f'output         → {CALL[1]} {{"city":"Bern"}}' in ended
    assert "100 in · 10 out" in ended
