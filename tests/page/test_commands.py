"""Every command that the page shows is one that runs, and answers the same question."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import wakelog
from tests.cli.conftest import Cli, Result
from tests.page.conftest import Open
from tests.page.hands import Clicks
from tests.page.test_accessible import PAGES
from wakelog.http.server import RunningServer

pytestmark = pytest.mark.slow

TABS = ("state", "diff", "context", "files", "why", "cost", "raw")
SCREENS = {
    **{name: path for name, path in PAGES.items() if name != "no such session"},
    **{f"{tab} now": f"/s/fix-bug?tab={tab}" for tab in TABS},
    **{f"{tab} of a turn": f"/s/fix-bug/@6.1?tab={tab}" for tab in TABS},
    **{f"{tab} of an event": f"/s/fix-bug/e71?tab={tab}" for tab in TABS},
    "a key": "/s/fix-bug/@9/state/data/risk",
    "a range": "/s/fix-bug/diff/@5..@9",
    "a window": "/s/fix-bug/context/@9",
    "a file": "/s/fix-bug/files/src/auth/session.py?at=@9",
    "a line": "/s/fix-bug/why?of=src/auth/session.py:4",
    "effects of an event": "/s/injection/why?of=e9&direction=effects",
    "no question": "/s/injection/why",
    "all filters": "/?agent=demo-agent&status=active&label=repo%3Dshop&name=fix*&live=true&pending=true&since=9999d",
    "flagged": "/?flagged=true&text=spam",
    "failed": "/?failed=true",
    "stuck": "/live?needs=stuck",
    "paused": "/live?needs=paused",
    "search in decisions": "/search?q=column&kind=decision&since=365d&session=fix-bug",
    "empty search": "/search",
    "empty compare": "/compare",
    "compare one": "/compare?a=fix-bug",
    "cohorts": "/compare?before=agent=worker-1&after=agent=worker-2",
    "cost of a week": "/cost?by=day&since=7d",
    "decisions touched": "/taint?source=web:*&part=decision",
    "an altered session": "/s/tampered",
}
ANSWERS = {
    "verify what was altered": 4,
    "audit": 4,
    "an altered session": 4,
    "search for nothing": 1,
    "why of a turn": 1,
}
"""Where the answer is that something is damaged, or that there is nothing, the exit code says so."""


@pytest.fixture
def run(cli: Cli) -> Callable[..., Result]:
    """Runs a line of the page on a store; the page's own program is the only one it may start."""

    def one(line: str, store: Path, *more: str) -> Result:
        program, *words = shlex.split(line)
        assert program == "wakelog"
        return cli(*words, *more, env={"WAKELOG_STORE": str(store)})

    return one


@pytest.mark.parametrize("name", SCREENS)
def test_the_command_of_a_screen_runs(
    name: str, open_page: Open, reading: RunningServer, stories: Path, run: Callable[..., Result]
) -> None:
    reader = open_page(reading, SCREENS[name]).settle()
    command = reader.page.get_by_label("The same on the command line").inner_text()
    done = run(command, stories)
    assert done.code == ANSWERS.get(name, 0), (command, done)
    assert done.out.strip(), command


DIALOGS = {
    "rewind": ("/s/fix-bug/@9", "^Rewind…$", {}),
    "fork": ("/s/fix-bug/@4", "^Fork…$", {"[Nn]ame": "try it's", "Reason": "to see"}),
    "note": ("/s/fix-bug/@4", "^Note…$", {"Text": "it's $HOME"}),
    "checkpoint": ("/s/fix-bug/@4", "^Name…$", {"Name": "here"}),
    "answer": ("/s/fix-bug", "^Answer…$", {r"^\s*no$": ""}),
    "reconcile": ("/s/crash", "^Reconcile…$", {}),
    "pause": ("/live", "^Pause…$", {"Why": "it loops"}),
}


@pytest.mark.parametrize("name", DIALOGS)
def test_the_command_of_a_dialog_does_what_the_dialog_does(
    name: str, open_page: Open, writing: RunningServer, tmp_path: Path, run: Callable[..., Result]
) -> None:
    path, button, fields = DIALOGS[name]
    reader = open_page(writing, path).settle()
    hands = Clicks(reader)
    if name == "pause":
        reader.page.get_by_label("Select nightly-31", exact=True).click()
    hands.press(button)
    dialog = reader.page.get_by_role("dialog")
    for label, text in fields.items():
        field = dialog.get_by_label(re.compile(label)).first
        field.fill(text) if text else field.check()
    command = dialog.get_by_label("The same on the command line").inner_text()
    copy = tmp_path / "copy"
    shutil.copytree(tmp_path / "store", copy)
    before = _heads(copy)
    done = run(command, copy, *(["--yes"] if name == "rewind" else []))
    assert done.code == 0, (command, done)
    after = _heads(copy)
    assert after != before, command
    changed = {key for key in after if after[key] != before.get(key)}
    dialog.get_by_role("button", name=re.compile("^(Rewind|Fork|Add|Name|Answer|Record|Pause)")).first.click()
    dialog.wait_for(state="detached")
    here = _heads(tmp_path / "store")
    assert len({key for key in here if here[key] != before.get(key)}) == len(changed), "the page changed as much"


def _heads(store: Path) -> dict[str, int]:
    """The last event of each session that can be read."""
    with wakelog.open(store) as opened:
        return {row.id: row.head for row in opened.index.sessions(limit=200)}


TASKS = ("Resume…", "Share as a file…", "Find the first bad turn…", "Replay from @4…")


@pytest.mark.parametrize("task", TASKS)
def test_the_command_of_a_task_runs(
    task: str,
    open_page: Open,
    reading: RunningServer,
    stories: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: Callable[..., Result],
) -> None:
    reader = open_page(reading, "/s/fix-bug/@4").settle()
    hands = Clicks(reader)
    hands.press("^More for fix-bug$")
    hands.press(f"^{re.escape(task)}$")
    command = reader.page.get_by_role("dialog").locator("code").inner_text()
    shutil.copytree(stories, tmp_path / "store")
    monkeypatch.chdir(tmp_path)
    done = run(command, tmp_path / "store")
    assert done.code == 0, (command, done)
    if task.startswith("Share"):
        assert "mask" in done.err + done.out, "what is masked is listed"
        assert (tmp_path / "fix-bug.html").exists()
