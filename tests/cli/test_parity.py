"""The same verbs everywhere: what the library can do, the command line can, or there is a reason why not."""

import click
import pytest

from tests.every import every
from wakelog.cli.app import app
from wakelog.cli.command_table import ALIASES, FIRST_COMMANDS, SECTIONS
from wakelog.session import Session
from wakelog.session.budget import Monitors, SessionBudget
from wakelog.session.calls import SessionCalls
from wakelog.session.context import SessionContext
from wakelog.session.files import Files
from wakelog.session.history import SessionHistory
from wakelog.session.life import SessionLife
from wakelog.session.trust import SessionTrust
from wakelog.store import Store

COMMANDS = [name for section in SECTIONS.values() for name in section]

# verb → the command that does it
DONE_BY = {
    "Session.calls.abandon": "abandon",
    "Session.accept": "accept",
    "Session.anchor": "anchor",
    "Session.calls.answer": "answer",
    "Session.calls.approve": "approve",
    "Session.calls.pending": "pending",
    "Session.calls.table": "calls",
    "Session.budget.spent": "budget",
    "Session.budget.left": "budget",
    "Session.calls.deny": "deny",
    "Session.calls.evidence": "reconcile",
    "Session.calls.reconcile": "reconcile",
    "Session.life.archive": "archive",
    "Session.adopt": "adopt",
    "Session.history.attempts": "attempts",
    "Session.history.bisect": "bisect",
    "Session.history.start_bisect": "bisect",
    "Session.history.end_bisect": "bisect",
    "Session.files.checkout": "bisect",
    "Session.files.worktree": "fork",
    "Session.history.blame": "blame",
    "Session.brief": "brief",
    "Session.life.cancel": "cancel",
    "Session.checkpoint": "checkpoint",
    "Session.monitors.clear_flag": "flag",
    "Session.life.end": "close",
    "Session.context.compact": "compact",
    "Session.context.compactions": "compact",
    "Session.history.commit": "show",
    "Session.history.compare": "compare",
    "Session.context.seen": "context",
    "Session.context.window": "context",
    "Session.budget.cost": "cost",
    "Session.data": "state",
    "Session.diff": "diff",
    "Session.trust.endorse": "endorse",
    "Session.events": "log",
    "Session.context.expand": "expand",
    "Session.follow": "tail",
    "Session.files.commits": "git",
    "Session.files.diff": "diff",
    "Session.files.link_commits": "git",
    "Session.files.change": "show",
    "Session.files.modified": "files",
    "Session.files.plan": "rewind",
    "Session.files.plan_diff": "rewind",
    "Session.monitors.flag": "flag",
    "Session.export_bundle": "export",
    "Session.fork": "fork",
    "Session.head": "status",
    "Session.id": "ls",
    "Session.insight": "insight",
    "Session.trust.invalidate": "invalidate",
    "Session.messages": "show",
    "Session.monitors.add": "watch",
    "Session.note": "note",
    "Session.life.pause": "pause",
    "Session.history.preview_adopt": "adopt",
    "Session.history.preview_rewind": "rewind",
    "Session.life.reopen": "reopen",
    "Session.history.recording": "replay",
    "Session.replay": "replay",
    "Session.calls.workflow": "replay",
    "Session.context.replaced": "expand",
    "Session.life.unpause": "resume",
    "Session.redo": "redo",
    "Session.files.restore": "rewind",
    "Session.rewind": "rewind",
    "Session.budget.set": "budget",
    "Session.state": "state",
    "Session.status": "status",
    "Session.history.tool_of": "log",
    "Session.history.name_of": "log",
    "Session.trust.taint": "taint",
    "Session.trust.taint_across": "taint",
    "Session.trust.why_across": "why",
    "Session.undo": "undo",
    "Session.verify": "verify",
    "Session.why": "why",
    "Store.anchors": "anchor",
    "Store.encryption": "store",
    "Store.changers": "why",
    "Store.cost": "cost",
    "Store.line_writer": "why",
    "Store.rollup": "rollup",
    "Store.delete": "delete",
    "Store.erase": "erase",
    "Store.find": "ls",
    "Store.find_derived": "search",
    "Store.follow": "tail",
    "Store.git": "git",
    "Store.known": "known",
    "Store.patterns": "patterns",
    "Store.plans": "plans",
    "Store.preferences": "preferences",
    "Store.import_bundle": "import",
    "Store.index": "search",
    "Store.is_index_behind": "ls",
    "Store.newest_index": "ls",
    "Store.idle_us": "config",
    "Store.on_effect": "config",
    "Store.prices": "cost",
    "Store.resume": "resume",
    "Store.session_ids": "doctor",
    "Store.sessions": "ls",
    "Store.taint": "taint",
    "Store.verify": "verify",
    "Store.watch": "watch",
}
RECORDING = "recording is for the program that does the work; a person would be making things up"
PLUMBING = "a building block of the verbs above, without an answer of its own"
NOT_DONE = {
    "Session.trust.picture": "drawn by the page; `why` and `taint` say the same in lines",
    "Store.reserve": "for links to a session that is opened later, which a person has no use for",
    "Store.is_open": "for importers; a person sees it in ls",
    **dict.fromkeys(["Session.files.capture"], "files are captured around the calls of a program"),
    "Store.preferences_for": "part of every brief; `preferences` lists them",
    "Store.word_places": "part of every `why`",
    **dict.fromkeys(
        [
            *(
                f"Session.{v}"
                for v in ("append", "artefact", "attempts", "call", "dead_end", "decide", "fact", "message")
            ),
            *(f"Session.{v}" for v in ("model", "patch", "retract", "run_turn", "set_goal", "tool", "turn")),
            *(f"Session.calls.{v}" for v in ("bind", "returned", "spawned")),
            *("Session.files.record", "Session.context.touch"),
            "Store.session",
            "Store.spawn",
            "Store.log",
        ],
        RECORDING,
    ),
    "Session.calls.recover": "a new turn does it, or close; by hand a call is settled with `reconcile`",
    "Session.budget.limit": "a limit on a part of a program's work; `budget` sets those of the session",
    **dict.fromkeys(["Session.monitors.guards", "Session.store"], PLUMBING),
    **dict.fromkeys(["Session.seq", "Store.close"], PLUMBING),
    **dict.fromkeys(
        ["Session.context.evict", "Session.context.restore", "Session.context.pin"],
        "the program that calls the model keeps its window; `context` shows it",
    ),
    "Session.label": "`hold` sets the one label that forbids something; others are the program's",
    "Session.life.take_lease": "a lease belongs to a running process, and a command is over at once",
    "Session.life.release_lease": "as take_lease; `doctor` names stale ones, and the next writer takes over",
}


def _verbs() -> set[str]:
    found = {f"{cls.__name__}.{name}" for cls in (Session, Store) for name in _public(cls)} - {"Session.aio"}
    spaces = {
        "calls": SessionCalls,
        "context": SessionContext,
        "files": Files,
        "budget": SessionBudget,
        "monitors": Monitors,
        "trust": SessionTrust,
        "life": SessionLife,
        "history": SessionHistory,
    }
    found -= {f"Session.{space}" for space in spaces}
    return found | {f"Session.{space}.{name}" for space, cls in spaces.items() for name in _public(cls)}


def _public(cls: type) -> list[str]:
    return [name for name in dir(cls) if not name.startswith("_")]


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
    assert set(FIRST_COMMANDS) | set(ALIASES.values()) <= set(COMMANDS)


@every("name", COMMANDS)
def test_every_command_loads_and_has_help(name: str) -> None:
    command = _load(name)
    assert command.name == name
    assert command.help
    assert command.get_help(click.Context(command, info_name=name))


@every("name", COMMANDS)
def test_every_command_has_an_example(name: str) -> None:
    for path, command in [(name, _load(name)), *_leaves(_load(name), name)]:
        assert f"wakelog {path}" in (command.help or ""), f"the help of {path} has no example"


@every("name", COMMANDS)
def test_every_command_answers_programs_too(name: str) -> None:
    for path, command in _leaves(_load(name), name):
        options = {option for param in command.params for option in param.opts}
        assert {"--json", "--ndjson", "--store", "--no-input"} <= options, path


@pytest.mark.parametrize("name", ["rewind", "erase", "redact", "delete", "import", "gc"])
def test_what_cannot_be_taken_back_can_be_tried_first(name: str) -> None:
    options = {option for param in _load(name).params for option in param.opts}
    assert "--dry-run" in options
    assert name == "import" or "--yes" in options
