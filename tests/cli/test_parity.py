"""The same verbs everywhere: what the library can do, the command line can, or there is a reason why not."""

import click
import pytest

from wakelog.cli.app import ALIASES, SECTIONS, SHORT, app
from wakelog.session import Session
from wakelog.store import Store

COMMANDS = [name for section in SECTIONS.values() for name in section]

# verb → the command that does it
DONE_BY = {
    "Session.abandon": "abandon",
    "Session.anchor": "anchor",
    "Session.answer": "answer",
    "Session.approve": "approve",
    "Session.deny": "deny",
    "Session.evidence": "reconcile",
    "Session.reconcile": "reconcile",
    "Session.archive": "archive",
    "Session.adopt": "adopt",
    "Session.attempts_of": "attempts",
    "Session.blame": "blame",
    "Session.brief": "brief",
    "Session.checkpoint": "checkpoint",
    "Session.clear_flag": "flag",
    "Session.close": "close",
    "Session.compact": "compact",
    "Session.compactions": "compact",
    "Session.compare": "compare",
    "Session.context": "context",
    "Session.cost": "cost",
    "Session.prices": "cost",
    "Store.prices": "cost",
    "Session.data": "state",
    "Session.diff": "diff",
    "Session.endorse": "endorse",
    "Session.events": "log",
    "Session.expand": "expand",
    "Session.follow": "tail",
    "Session.file_diff": "diff",
    "Session.files": "files",
    "Session.flag": "flag",
    "Session.fork": "fork",
    "Session.head": "status",
    "Session.id": "ls",
    "Session.invalidate": "invalidate",
    "Session.messages": "show",
    "Session.monitor": "watch",
    "Session.note": "note",
    "Session.pause": "pause",
    "Session.prices": "cost",
    "Session.reopen": "reopen",
    "Session.replay": "replay",
    "Session.workflow": "replay",
    "Session.replaced": "expand",
    "Session.resting_on": "taint",
    "Session.resume": "resume",
    "Session.redo": "redo",
    "Session.restore_files": "rewind",
    "Session.rewind": "rewind",
    "Session.set_budget": "budget",
    "Session.state": "state",
    "Session.state_document": "state",
    "Session.status": "status",
    "Session.taint": "taint",
    "Session.undo": "undo",
    "Session.value": "show",
    "Session.verify": "verify",
    "Session.why": "why",
    "Store.cost": "cost",
    "Store.delete": "delete",
    "Store.erase": "erase",
    "Store.find": "ls",
    "Store.fork": "fork",
    "Store.index": "search",
    "Store.on_effect": "config",
    "Store.prices": "cost",
    "Store.resume": "resume",
    "Store.sessions": "ls",
    "Store.watch": "watch",
}
RECORDING = "recording is for the program that does the work; a person would be making things up"
PLUMBING = "a building block of the verbs above, without an answer of its own"
NOT_DONE = {
    **dict.fromkeys(["Session.capture", "Session.capture_files"], "files are captured around the calls of a program"),
    "Store.scrub_removed": "part of every erasure; `store scrub` does what had to wait",
    "Store.scrub_index": "part of every removal; commands that remove call it",
    **dict.fromkeys(
        [
            *(f"Session.{v}" for v in ("append", "artefact", "dead_end", "decide", "fact", "file", "message", "patch")),
            *(f"Session.{v}" for v in ("retract", "returned", "spawned", "touch", "turn", "set_goal")),
            *(f"Session.{v}" for v in ("attempts", "run_turn", "arun_turn")),
            *(f"Session.{v}" for v in ("acall", "amodel", "bind", "call", "end_turn", "model", "start_turn", "tool")),
            "Store.session",
            "Store.spawn",
            "Store.log",
        ],
        RECORDING,
    ),
    "Session.recover": "a new turn does it, or close; by hand a call is settled with `reconcile`",
    "Session.budget": "a limit on a part of a program's work; `budget` sets those of the session",
    **dict.fromkeys(["Session.guards", "Session.store"], PLUMBING),
    **dict.fromkeys(["Session.begin_turn", "Session.finish_turn", "Session.seq", "Store.close"], PLUMBING),
    **dict.fromkeys(
        ["Session.evict", "Session.restore", "Session.pin"],
        "the program that calls the model keeps its window; `context` shows it",
    ),
    "Session.label": "`hold` sets the one label that forbids something; others are the program's",
    "Session.state_hash": "a part of `verify` and of `show --json`; nobody types a state hash",
    "Session.take_lease": "a lease belongs to a running process, and a command is over at once",
    "Session.release_lease": "as take_lease; `doctor` names stale ones, and the next writer takes over",
}


def _verbs() -> set[str]:
    return {f"{cls.__name__}.{name}" for cls in (Session, Store) for name in dir(cls) if not name.startswith("_")}


def _load(name: str) -> click.Command:
    command = app.get_command(click.Context(app), name)
    assert command is not None, name
    return command


def _leaves(command: click.Command, path: str) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(path, command)]
    return [leaf for name, each in command.commands.items() for leaf in _leaves(each, f"{path} {name}")]


def test_every_verb_has_a_command_or_a_reason() -> None:
    missing = _verbs() - set(DONE_BY) - set(NOT_DONE)
    assert not missing, f"give these a command, or say in NOT_DONE why they have none: {sorted(missing)}"


def test_the_lists_name_only_what_there_is() -> None:
    assert not set(DONE_BY) & set(NOT_DONE)
    gone = (set(DONE_BY) | set(NOT_DONE)) - _verbs()
    assert not gone, f"no longer verbs: {sorted(gone)}"
    assert set(DONE_BY.values()) <= set(COMMANDS)
    assert set(SHORT) | set(ALIASES.values()) <= set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_loads_and_has_help(name: str) -> None:
    command = _load(name)
    assert command.name == name
    assert command.help
    assert command.get_help(click.Context(command, info_name=name))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example(name: str) -> None:
    for path, command in [(name, _load(name)), *_leaves(_load(name), name)]:
        assert f"wakelog {path}" in (command.help or ""), f"the help of {path} has no example"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_answers_programs_too(name: str) -> None:
    for path, command in _leaves(_load(name), name):
        options = {option for param in command.params for option in param.opts}
        assert {"--json", "--ndjson", "--store", "--no-input"} <= options, path


@pytest.mark.parametrize("name", ["rewind", "erase", "redact", "delete", "import", "gc"])
def test_what_cannot_be_taken_back_can_be_tried_first(name: str) -> None:
    options = {option for param in _load(name).params for option in param.opts}
    assert "--dry-run" in options
    assert name == "import" or "--yes" in options
