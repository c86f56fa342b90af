"""The same answers by the library, the command line, HTTP and MCP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mcp.server.mcpserver.exceptions import ToolError

from tests.cli.conftest import Cli
from tests.knowledge.past import edit, look, sh, worked
from wakelog.http.server import serving
from wakelog.http.state import Settings
from wakelog.mcp.lazy_store import LazyStore
from wakelog.mcp.tools import Tools
from wakelog.model import events as ev
from wakelog.store import Store
from wakelog.store import open as open_store

MISSING = "ModuleNotFoundError: No module named 'yaml'"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a past: an error that ended, a dead end, a fact and its contradiction."""
    monkeypatch.chdir(tmp_path)
    with open_store(tmp_path / "store") as store:
        for name in ("one", "two", "three"):
            steps = [look("a.py"), sh("pytest t", MISSING), sh("pip install yaml"), sh("pytest t"), edit("src/a.py")]
            dead = ev.DeadEndNoted(tried="a lock in src/a.py", learned="it deadlocks")
            fact = ev.FactRecorded(key="region", value="eu" if name == "one" else "us")
            worked(store, name, steps, goal="export the invoices", events=[dead, fact], outcome="completed")
    return tmp_path / "store"


@pytest.fixture
def store(folder: Path) -> Iterator[Store]:
    with open_store(folder) as opened:
        yield opened


def refunds(store: Store) -> str:
    """Three sessions that did the same for other orders; returns the chain."""
    for number in range(3):
        session = store.session(f"refund-{number}", labels={"repo": "/code/pay"}, folder="")
        given = {"order": f"order-47{number}"}
        with session.turn(given):
            for tool in ("find", "refund", "notify"):
                session.append(ev.ActionRecorded(action=f"{tool}-{number}", tool=tool, input=given, output="ok"))
    [chain] = store.patterns.find(project="/code/pay", kinds=("chain",)).patterns
    return chain.id


def test_the_command_line_tells_what_is_known(folder: Path, cli: Cli) -> None:
    at = ("--store", str(folder))
    about = cli("known", "about", "src/a.py", *at)
    assert about.code == 0
    assert "    a lock in src/a.py: it deadlocks" in about.lines
    assert "    changed 3 times in 3 sessions" in about.lines
    assert cli("known", "failed", "src/nothing.py", *at).code == 1
    conflicts = cli("known", "conflicts", *at)
    assert sum("contradicted" in line for line in conflicts.lines) == 2
    recall = cli("known", "recall", "--error", MISSING, *at)
    assert "worked again 3 of 3 times, mostly after pip install" in recall.out
    assert "one" in cli("known", "like", "invoices export", *at).out
    assert cli("known", "path", "src/a.py", "region", *at).code == 0


def test_the_command_line_answers_in_json_with_every_source(folder: Path, cli: Cli) -> None:
    said = json.loads(cli("known", "facts", "--json", "--store", str(folder)).out)
    assert said["schema"] == "wakelog.known/1"
    assert [line["text"] for line in said["data"]["lines"]] == ["region = us", "region = eu"]
    assert all("@" in source for line in said["data"]["lines"] for source in line["sources"])


def test_patterns_without_a_command_lists_them(folder: Path, cli: Cli) -> None:
    at = ("--store", str(folder))
    listed = cli("patterns", *at)
    assert "    Read → pytest → pip install → pytest → Edit" in listed.lines
    assert "too few runs of the same task" in listed.out
    found = json.loads(cli("patterns", "--json", *at).out)["data"]["patterns"]
    shown = cli("patterns", "show", found[0]["id"], *at)
    assert shown.out.count("e3") == 3
    assert cli("patterns", "map", "--format", "svg", *at).out.startswith("<svg")
    assert "too few" in cli("compare-cohorts", "outcome=completed", "outcome=failed", *at).out


def test_a_brief_can_have_the_past_beside_it(folder: Path, cli: Cli) -> None:
    brief = cli("brief", "three", "--past", "--store", str(folder)).out
    assert "## From earlier sessions" in brief
    assert "export the invoices" in brief.partition("## From earlier sessions")[2]


def test_an_agent_recalls_over_mcp(store: Store) -> None:
    tools = Tools(LazyStore.of(store))
    session = store.session("four", labels={"repo": "/code/shop"}, folder="")
    said = json.loads(tools.recall(error=MISSING, session_id="four"))
    assert said["lines"][0]["kind"] == "recipe"
    assert session.log.entry(session.head.seq).kind == "knowledge.recalled"
    tools.records_recall = False
    assert json.loads(tools.recall(error=MISSING, session_id="four"))["lines"]
    assert session.log.entry(session.head.seq - 1).kind == "session.opened"
    [line] = json.loads(tools.recall(files=["src/a.py"], session_id="four"))["lines"]
    assert line["text"] == "a lock in src/a.py: it deadlocks"


def test_an_agent_asks_about_a_thing_and_is_offered_endorsed_plans_only(store: Store) -> None:
    tools = Tools(LazyStore.of(store))
    lines = json.loads(tools.known("src/a.py", "failed"))["lines"]
    assert [line["text"] for line in lines] == ["a lock in src/a.py: it deadlocks"]
    assert json.loads(tools.lessons("plans"))["plans"] == []
    store.plans.promote(refunds(store), "refund")
    assert json.loads(tools.lessons("plans"))["plans"] == []
    store.plans.endorse("refund")
    [plan] = json.loads(tools.lessons("plans"))["plans"]
    assert (plan["name"], plan["needs"]) == ("refund", ["order"])


def test_an_agent_asks_for_patterns_preferences_sums_and_past_sessions(store: Store) -> None:
    tools = Tools(LazyStore.of(store))
    found = json.loads(tools.lessons("patterns"))
    recipe = next(row for row in found["patterns"] if row["kind"] == "recipe")
    assert recipe["id"] in {each.id for each in store.patterns.find().patterns}
    assert (recipe["sessions"] > 1, found["notes"]) == (True, list(store.patterns.find().notes))
    kept = store.preferences.add("run the linter first", project="/nowhere")
    assert json.loads(tools.lessons("preferences"))["preferences"] == [{"text": kept.text, "source": kept.source}]
    mine = next(head.session for head in store.sessions() if head.name)
    assert json.loads(tools.lessons("preferences", session_id=mine))["preferences"] == []
    rows = json.loads(tools.lessons("rollup", "phase"))["rollup"]
    assert (rows[-1]["key"], rows[-1]["calls"]) == ("(all)", store.rollup("phase").total.calls)
    with pytest.raises(ToolError, match="rolled up by 'month'"):
        tools.lessons("rollup", "month")
    assert json.loads(tools.lessons("like", "nothing of that kind"))["like"] == []


def test_a_chain_is_promoted_endorsed_and_removed_by_commands(folder: Path, cli: Cli) -> None:
    at = ("--store", str(folder))
    failing = json.loads(cli("patterns", "--kind", "chain", "--json", *at).out)["data"]["patterns"][0]["id"]
    refused = cli("patterns", "promote", failing, "--name", "export", *at)
    assert (refused.code, "0 independent sessions completed it" in refused.err) == (6, True)
    with open_store(folder) as store:
        chain = refunds(store)
    made = cli("patterns", "promote", chain, "--name", "export", *at)
    assert (made.code, "not endorsed" in made.out) == (0, True), made.err
    assert "endorsed by ann" in cli("plans", "endorse", "export", "--by", "ann", *at).out
    assert json.loads(cli("plans", "--json", *at).out)["data"][0]["endorsed"]
    assert "from 3 sessions; never run" in cli("plans", "show", "export", *at).out
    assert cli("plans", "rm", "export", *at).code == 0
    assert (cli("plans", *at).code, cli("plans", "show", "export", *at).code) == (1, 3)


def test_work_is_summed_up_by_commands(folder: Path, cli: Cli) -> None:
    at = ("--store", str(folder), "-A")
    rows = json.loads(cli("rollup", "--by", "phase", "--json", *at).out)["data"]["rows"]
    assert {row["name"]: row["calls"] for row in rows} == {"explore": 3, "change": 3, "check": 6, "run": 3}
    assert "all" in cli("rollup", *at).out
    assert cli("rollup", "--by", "day", "--svg", "calls", *at).out.startswith("<svg")


def test_preferences_are_kept_shown_and_removed_by_commands(folder: Path, cli: Cli) -> None:
    at = ("--store", str(folder))
    kept = json.loads(cli("preferences", "add", "use tabs", "--json", *at).out)["data"]
    assert "use tabs" in cli("brief", "one", *at).out
    assert kept["id"] in cli("preferences", *at).out
    assert cli("preferences", "rm", kept["id"], *at).code == 0
    assert "use tabs" not in cli("brief", "one", *at).out
    assert cli("preferences", *at).code == 1


def test_a_served_store_gives_the_same_answers(folder: Path) -> None:
    def asked(store: Store) -> list[Any]:
        known, patterns = store.known, store.patterns
        answers = [
            known.about("src/a.py"),
            known.facts(conflicts=True),
            known.recall(error=MISSING, goal="export the invoices"),
            known.path("src/a.py", "region"),
            patterns.find(),
            patterns.map(),
            patterns.compare({"outcome": "completed"}, {"outcome": "failed"}),
            *(store.rollup(by) for by in ("turn", "phase", "session", "project", "day")),
            *store.plans.all(),
            *store.preferences.all(),
        ]
        return [{**msgspec.to_builtins(each), "as_of": None} for each in answers]

    with open_store(folder) as store:
        store.plans.promote(refunds(store), "refund")
        store.preferences.add("use tabs")
        wanted = asked(store)
    with serving(Settings(url=str(folder), rate=0)) as running, open_store(running.url, key=running.key) as remote:
        assert asked(remote) == wanted


TOOLS = """
def find(order):
    print("looking for", order)
    if order == "order-0":
        raise LookupError("there is none")
    return "found"

def send(order):
    return "sent"

notify = send
"""


def test_a_plan_runs_on_new_inputs_from_the_command_line(
    folder: Path, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "order_tools.py").write_text(TOOLS)
    at = ("--store", str(folder))
    run = ("plans", "run", "refund", *at)
    with open_store(folder) as opened:
        opened.plans.promote(refunds(opened), "refund")
    refused = cli(*run, "--set", "order=order-500")
    assert (refused.code, "is not endorsed" in refused.err) == (6, True)
    assert cli("plans", "endorse", "refund", *at).code == 0
    told = cli(*run, "--set", "order=order-500", "--tools", "order_tools")
    assert told.code == 1
    assert "nothing was run: refund is not given" in told.out
    assert "store.plans.run('refund', session, {'order': 'order-500'}, tools=tools)" in told.out
    tools = ("--tools", "order_tools", "--tools", "refund=order_tools:send")
    assert "give it with --set order=TEXT" in cli(*run, *tools).err
    assert "is not JSON" in cli(*run, "--set", "order:=x", *tools).err
    assert "no module order_toys" in cli(*run, "--tools", "order_toys").err
    done = cli(*run, "--set", "order=order-500", *tools)
    assert (done.code, done.out.splitlines()[-1]) == (0, "refund: 3 of 3 steps")
    failed = cli(*run, "--set", "order=order-0", *tools, "--json")
    assert failed.code == 1
    assert "LookupError: there is none" in json.loads(failed.out)["data"]["stopped"]
    [plan] = json.loads(cli("plans", "--json", *at).out)["data"]
    assert (plan["runs"], plan["succeeded"], plan["failed"]) == (2, 1, 1)
    assert "wakelog.plans" not in cli("ls", *at).out
    assert "wakelog.plans" in cli("ls", "-A", *at).out
    assert "refund-run" in cli("status", *at).out


def test_a_thing_that_is_asked_about_without_the_word_about_says_how(cli: Cli) -> None:
    answer = cli("known", "src/auth.py")
    assert answer.code == 2
    assert "Did you mean: wakelog known about src/auth.py?" in answer.err
