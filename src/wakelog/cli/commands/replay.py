"""`wakelog replay`: run recorded turns again, against recorded results."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.errors import NO
from wakelog.cli.render.places import place
from wakelog.cli.render.replays import plain_report, say_plan, say_recording, say_report
from wakelog.cli.render.sessions import handle
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import inert
from wakelog.errors import DivergenceError, WakelogError
from wakelog.model.values import Value
from wakelog.replay.recording import Recording, read_recording
from wakelog.session import Session
from wakelog.timeline.selectors import Selector


@click.command("replay")
@click.argument("selector", metavar="[SEL]", required=False, default="", shell_complete=complete_selector)
@click.option("--from", "start", default="", metavar="SEL", help="Begin there, and go on to the end of SEL.")
@click.option("--mode", type=click.Choice(["strict", "fill", "live"]), default="strict", help="Default: strict.")
@click.option("--agent", default="", metavar="MODULE:FUNCTION", help="The code to run, found from this folder.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VAL", help="Another input, or other data; see above.")
@click.option("--effects", type=click.Choice(["refuse", "allow"]), default="refuse", help="May calls with effects run?")
@click.option("--order", type=click.Choice(["recorded", "any"]), default="recorded", help="Does the order count?")
@click.option("--record", is_flag=True, help="Keep a strict replay too, in a fork.")
@click.option("--dry-run", is_flag=True, help="Only say what would be replayed.")
@click.option("--plan", "as_plan", is_flag=True, help="The calls as a plan that runs on new inputs.")
@common
def replay_command(
    ctx: Context,
    selector: str,
    start: str,
    mode: str,
    agent: str,
    changes: tuple[str, ...],
    dry_run: bool,
    as_plan: bool,
    **how: Any,
) -> int:
    """Runs an agent's code again on recorded turns and says, step by step, whether it does the same.

    strict answers every tool and model call from the record: nothing runs, nothing is written, and the first difference
    ends it. fill answers what is recorded and runs the rest; live runs everything and compares. Both happen in a fork,
    and calls with effects are refused unless --effects allow. Exits with 1 when something is different.

    The function is called with (session, input) for each turn, or with (session) once. Without --agent: what would be
    replayed. --set input=TEXT begins the first turn with another input, input.5=TEXT turn @5, /data/KEY=JSON starts
    from other data, and @FILE stands for what is in a file.

    \b
    Examples:
      wakelog replay fix-bug@4 --agent app.agent:run
      wakelog replay fix-bug --from @4 --mode fill --agent app.agent:run --set input=@new.txt
      wakelog replay fix-bug@4 --plan
    """
    session, selected = ctx.select(selector)
    where = _where(ctx, session, selected, start)
    sets = dict(_sets(changes))
    if as_plan:
        return _show_plan(ctx, session, where, sets)
    if sets and mode == "strict":
        raise click.UsageError(
            "--set changes what is replayed, and strict allows no difference: add --mode fill or live"
        )
    recording = read_recording(session.log, where)
    if dry_run or not agent:
        data = {**plain_recording(recording), "mode": mode, "agent": agent or None}
        ctx.answer("recording", data, lambda: say_recording(ctx, recording, mode, agent))
        if not agent:
            ctx.suggest(f"wakelog replay {selector or handle(session)} --agent MODULE:FUNCTION")
        return 0
    return _run(ctx, session, where, agent, sets, mode=mode, **how)


def _where(ctx: Context, session: Session[Any], selected: Selector, start: str) -> str:
    """The range that SEL and --from name together."""
    first, last = selected.first, selected.last or selected.first
    if start:
        _, begin = ctx.select(start)
        if begin.session or begin.last:
            raise click.UsageError("--from names one place of the same session, such as @4")
        first, last = begin.first, last or "@"
    text = first + (f"..{last}" if last and last != first else "")
    if text:
        place(ctx, session, text)  # for its error, which names what is near
    return text


def _sets(changes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for change in changes:
        key, equals, text = change.partition("=")
        if not equals or not key:
            raise click.UsageError(f"--set {change!r} is not written as KEY=VAL")
        if text.startswith("@"):
            try:
                text = Path(text[1:]).read_text(encoding="utf-8")
            except OSError as exc:
                raise click.UsageError(f"--set {key}: {text[1:]} cannot be read ({exc.strerror})") from exc
        yield key, text


def _show_plan(ctx: Context, session: Session[Any], where: str, sets: dict[str, str]) -> int:
    from wakelog.replay.plan_run import parameters

    plan = session.calls.workflow(where)
    given: dict[str, Value] = {}
    if sets:
        texts = {p.name for p in plan.parameters if isinstance(p.value, str)} | {str(p.value) for p in plan.parameters}
        given = {name: text if name in texts else _json(text) for name, text in sets.items()}
        values = parameters(plan, given, is_whole=False)
        changed = tuple(msgspec.structs.replace(p, value=values[p.name]) for p in plan.parameters)
        plan = msgspec.structs.replace(plan, parameters=changed)
    ctx.answer("plan", msgspec.to_builtins(plan), lambda: say_plan(ctx, plan))
    return 0


def _json(text: str) -> Value:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _run(ctx: Context, session: Session[Any], where: str, agent: str, sets: dict[str, str], **how: Any) -> int:
    from wakelog.replay.agent_run import load_agent

    # What the agent's code prints is not the answer.
    with contextlib.redirect_stdout(sys.stderr):
        function = load_agent(agent)
        replay = session.replay(where, **how)
        _change(replay, sets)
        refused: WakelogError | None = None
        try:
            with replay:
                replay.run(function)
        except DivergenceError:
            pass
        except WakelogError as exc:
            refused = exc
        except Exception as exc:
            ctx.warn(inert(f"the agent raised {type(exc).__name__}: {exc}", lines=False))
    report = replay.report
    ctx.answer("replay", plain_report(report), lambda: say_report(ctx, report))
    if report.fork:
        ctx.suggest(f"wakelog log {report.fork}", f"wakelog compare {where and handle(session) + where} {report.fork}")
    if refused is not None:
        raise refused
    return 0 if report.ok and not (report.state and report.mode == "strict") else NO


def _change(replay: Any, sets: dict[str, str]) -> None:
    """Other inputs, and other data to begin with."""
    for key, text in sets.items():
        if key.startswith("/data/"):
            replay.session.patch([{"op": "add", "path": key, "value": _json(text)}], why="replay --set")
            continue
        word, _, number = key.partition(".")
        turns = [str(begun.turn) for begun in replay.turns]
        wanted = number or (turns[0] if turns else "")
        if word != "input" or wanted not in turns:
            known = ", ".join(f"input.{turn}" for turn in turns)
            raise click.UsageError(f"--set {key}: it is neither below /data/ nor one of {known}")
        replay.inputs[turns.index(wanted)] = text


def plain_recording(recording: Recording) -> dict[str, Any]:
    """What would be replayed, for programs."""
    return {
        "session": recording.log.id,
        "replayed": recording.name,
        "first": recording.first,
        "last": recording.last,
        "turns": [
            {"turn": b.turn, "attempt": b.attempt, "input": b.input, "outcome": b.outcome} for b in recording.turns
        ],
        "steps": [
            {
                "number": s.number,
                "turn": s.turn or None,
                "seq": s.seq,
                "tool": s.tool,
                "effect": s.effect,
                "status": s.status or None,
                "answerable": bool(s.outcome) and not s.gone,
            }
            for s in recording.steps
        ],
    }
