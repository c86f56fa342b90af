"""`wakelog replay`: runs recorded turns again, against recorded results."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.options import json_or_text, place_argument
from wakelog.cli.render.results import plain, shape, shows
from wakelog.cli.render.sessions import handle
from wakelog.cli.render.table import Cell, Row, say_table
from wakelog.cli.render.values import scalar
from wakelog.cli.selectors import Place, find_span
from wakelog.cli.text import fit, glyph, inert, inert_line
from wakelog.errors import DivergenceError, WakelogError
from wakelog.model.short_text import pluralize
from wakelog.model.values import Value
from wakelog.replay.plan import Plan, Reference
from wakelog.replay.recording import RecordedCall, RecordedTurn, Recording
from wakelog.replay.report import ReplayRow as Compared
from wakelog.replay.report import Report
from wakelog.session import Session

_STEPS = " | > |  |  | 24 | 10 -1"
_HOW = {"recorded": "answered from the record", "run": "run", "refused": "refused: it has effects", "": ""}
_MODES = {
    "strict": "every call answered from the record, in memory; nothing runs",
    "fill": "recorded calls answered, the others run, in a fork made first",
    "live": "everything runs and is compared, in a fork made first",
}


def plain_report(report: Report) -> dict[str, Any]:
    """A report as JSON."""
    divergence = report.divergence
    return {
        **{k: v for k, v in msgspec.to_builtins(report).items() if k not in ("steps", "name")},
        "replayed": report.name,
        "ok": report.ok,
        "divergence": None if divergence is None else {**_plain(divergence), "sentence": report.first_difference},
        "steps": [_plain(row) for row in report.steps],
        "error": report.error or None,
    }


def _plain(row: Compared) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(row)
    return {k: v if v not in ("", 0) else None for k, v in fields.items()}


# What would be replayed


def say_recording(ctx: CommandContext, recording: Recording, mode: str, agent: str) -> None:
    """Prints what would be run again, and how to name the code."""
    ctx.say(f"{ctx.style(inert_line(recording.name), bold=True)}  {_summary(recording)}, from e{recording.start} on")
    ctx.say(f"  {mode}: {_MODES[mode]}")
    for number, turn in enumerate(recording.turns, 1):
        ctx.say(fit(f"  @{turn.turn}  {turn.words}  ({turn.outcome})", ctx.columns))
        _say_steps(ctx, recording, number)
    _say_steps(ctx, recording, 0)
    if not agent:
        ctx.say("Nothing was run: name the code with --agent MODULE:FUNCTION.")


def _say_steps(ctx: CommandContext, recording: Recording, place: int) -> None:
    rows = [_step_row(recording, step) for step in recording.steps if step.place == place]
    if rows:
        say_table(ctx, "> |  | 24 | 8", rows, titles=False)


def _step_row(recording: Recording, step: RecordedCall) -> Row:
    text = ("model " if step.is_model else "") + recording.words_of(step)
    note = step.gone and f"{step.gone}: cannot be answered"
    if not step.outcome:
        note = f"no outcome: {step.cut or 'it was still open'}"
    return (
        f"    {step.number}",
        Cell(f"e{step.seq}", {"fg": "cyan"}),
        Cell(("  " if step.inside else "") + text),
        Cell(note or step.status, {"fg": "yellow"} if note else {"dim": True}),
    )


def _summary(recording: Recording) -> str:
    return f"{pluralize(len(recording.turns), 'turn')}, {pluralize(len(recording.steps), 'step')}"


# The report


def say_report(ctx: CommandContext, report: Report) -> None:
    """Prints the first difference, then all steps."""
    ctx.say(f"{ctx.style(inert_line(report.name), bold=True)}  {report.mode}  {_sum(report)}")
    divergence = report.divergence
    if divergence is not None:
        ctx.say(f"{ctx.style('first difference:', fg='red', bold=True)} {inert(report.first_difference)}")
    if report.error and (divergence is None or report.mode != "strict"):
        ctx.say(f"{ctx.style('ended by:', fg='red')} {inert_line(report.error)}")
    for note in report.notes:
        ctx.say(f"{ctx.style('note:', fg='yellow')} {note}")
    rows = [row for row in report.steps if row.verdict != "unreached"]
    say_table(ctx, _STEPS, [line for row in rows for line in _lines(row)], titles=False)
    if len(rows) < len(report.steps):
        left = len(report.steps) - len(rows)
        words = "step was" if left == 1 else "steps were"
        ctx.remark(f"  {glyph('more')} {left} {words} not reached")
    if report.state:
        ctx.say(f"state    different at the end: {inert_line(', '.join(report.state))}")
    elif report.ok and report.mode == "strict":
        ctx.say("state    the same at the end")
    if report.fork:
        ctx.say(f"recorded in the fork {report.fork}")


def _sum(report: Report) -> str:
    if report.ok:
        return f"the same {report.count('same')} steps"
    words = ("same", "different", "moved", "new", "missing")
    return ", ".join(f"{report.count(word)} {word}" for word in words if report.count(word)) or "nothing was done"


def _lines(row: Compared) -> list[Row]:
    """A step; if the two sides differ, both of them."""
    agrees = row.agrees
    mark = glyph("done") if agrees else glyph("failed")
    style = {"dim": True} if agrees else {"fg": "red"}
    number = str(row.number) if row.kind != "turn" else ""
    turn = f"@{row.turn}" if row.turn else ""
    text = row.made or row.recorded
    if row.kind == "turn":
        text = f"input {text}"
    note = row.note or _HOW[row.how]
    where, verdict = Cell(turn, {"fg": "cyan"}), Cell(row.verdict, style)
    lines: list[Row] = [(f"  {mark}", number, where, verdict, text, Cell(note, {"dim": True}))]
    if not agrees and row.made and row.recorded and row.differs != ("result",):
        differs = Cell(f"{', '.join(row.differs)} differ{'s' * (len(row.differs) == 1)}" if row.differs else "")
        recorded = (Cell(f"e{row.seq}", {"fg": "cyan"}), Cell("recorded", {"dim": True}), row.recorded)
        lines.append(("", "", *recorded, differs))
    return lines


# Plans


@shows(Plan)
def say_plan(ctx: CommandContext, plan: Plan) -> None:
    """Prints a plan; each value says how it is known."""
    steps = pluralize(len(plan.steps), "step")
    ctx.say(f"{ctx.style('plan of ' + inert_line(plan.name), bold=True)}  {steps}")
    ctx.say("parameters" if plan.parameters else "parameters  none: no value of an input was found in a call")
    rows: list[Row] = [
        (f"  {p.name}", scalar(p.value, 40) if p.known != "unknown" else "must be given", p.origin, p.known)
        for p in plan.parameters
    ]
    say_table(ctx, "8 | 12 | -1 | ", rows, titles=False)
    for turn in plan.turns:
        ctx.say(fit(f"@{turn.turn}  input  {_template(turn.input)}", ctx.columns))
        _say_plan_steps(ctx, plan, turn.turn)
    _say_plan_steps(ctx, plan, 0)
    if plan.left_out:
        ctx.say("left out")
        out: list[Row] = [(f"  e{call.seq}", call.tool, Cell(call.why, {"dim": True})) for call in plan.left_out]
        say_table(ctx, " | 8 | 16", out, titles=False)
    ctx.say("Values marked with ~ were matched by their content: check them. --json gives the plan to keep and change.")


def _say_plan_steps(ctx: CommandContext, plan: Plan, turn: int) -> None:
    for step in plan.steps:
        if step.turn != turn:
            continue
        notes = [step.effect, *([f"e{step.seq}"] if step.seq else []), *(["for each item"] if step.over else [])]
        ctx.say(fit(f"  {step.number}  {step.tool}  ({', '.join(notes)})", ctx.columns))
        if step.over is not None:
            ctx.say(fit(f"       over  {_template(step.over)}", ctx.columns))
        rows: list[Row] = [(f"       {name}", _template(value)) for name, value in step.input.items()]
        say_table(ctx, "12 | 24", rows, titles=False)


def _template(value: Value) -> str:
    """A template on one line; ~order_id "4711" is a value that is filled in."""
    reference = Plan.reference(value)
    if reference is not None:
        return _reference(reference)
    if type(value) is dict and "$text" in value:
        return " + ".join(_template(part) for part in value["$text"])
    if type(value) is dict and "$value" in value:
        return scalar(value["$value"], 60)
    if type(value) is dict and value:
        return "{" + ", ".join(f"{k}: {_template(v)}" for k, v in value.items()) + "}"
    if type(value) is list and value:
        return "[" + ", ".join(map(_template, value)) + "]"
    return scalar(value, 60)


def _reference(reference: Reference) -> str:
    mark = {"matched": "~", "unknown": "?", "given": ""}[reference.known]
    between = f" between {reference.between[0]!r} and {reference.between[1]!r}" if reference.between else ""
    convert = f" as {reference.convert}" if reference.convert else ""
    recorded = f" ({scalar(reference.recorded, 40)})" if reference.known == "matched" else ""
    return f"{mark}{reference.use}{between}{convert}{recorded}"


@click.command("replay")
@place_argument()
@click.option("--from", "start", default="", metavar="SEL", help="Start here, and continue to the end of SEL.")
@click.option(
    "--mode",
    type=click.Choice(["strict", "fill", "live"]),
    default="strict",
    help="Answer calls in this way (default: strict).",
)
@click.option("--agent", default="", metavar="MODULE:FUNCTION", help="Run this function, found from this folder.")
@click.option("--set", "changes", multiple=True, metavar="KEY=VAL", help="Change an input or the data; see above.")
@click.option(
    "--effects", type=click.Choice(["refuse", "allow"]), default="refuse", help="Refuse or allow calls with effects."
)
@click.option(
    "--order",
    type=click.Choice(["recorded", "any"]),
    default="recorded",
    help="Expect calls in the recorded order, or in any.",
)
@click.option("--record", is_flag=True, help="Keep a strict replay too, in a fork.")
@click.option("--dry-run", is_flag=True, help="Show what would be replayed, and stop.")
@click.option("--plan", "as_plan", is_flag=True, help="Print the calls as a plan that runs on new inputs.")
@common
def replay_command(
    ctx: CommandContext,
    selector: str,
    start: str,
    mode: str,
    agent: str,
    changes: tuple[str, ...],
    dry_run: bool,
    as_plan: bool,
    **how: Any,
) -> int:
    """Run an agent's code again on recorded turns, and report step by step whether it does the same.

    strict answers every tool and model call from the record: nothing runs, nothing is written, and the first difference
    ends it. fill answers recorded calls and runs the others. live runs everything and compares. fill and live work in a
    fork, and refuse calls with effects unless you pass --effects allow. The exit code is 1 when something differs.

    The function is called with (session, input) for each turn, or with (session) once. Without --agent, show what would
    be replayed. --set input=TEXT changes the input of the first turn, input.5=TEXT that of turn @5, and /data/KEY=JSON
    the data at the start; @FILE reads the value from a file.

    Examples:
      wakelog replay fix-bug@4 --agent app.agent:run
      wakelog replay fix-bug@4 --mode fill --agent app:run --set input=@new.txt
      wakelog replay fix-bug@4 --plan
    """
    place = ctx.place(selector)
    session, where = place.session, _range_of(ctx, place, start)
    sets = dict(changes_of(changes))
    if as_plan:
        return _show_plan(ctx, session, where, sets)
    if sets and mode == "strict":
        raise click.UsageError(
            "--set changes what is replayed, and strict allows no difference: add --mode fill or live"
        )
    recording = session.history.recording(where)
    if dry_run or not agent:
        data = {**plain(recording), "mode": mode, "agent": agent or None}
        ctx.answer("recording", data, lambda: say_recording(ctx, recording, mode, agent))
        if not agent:
            ctx.suggest(f"wakelog replay {selector or handle(session)} --agent MODULE:FUNCTION")
        return 0
    return _run(ctx, session, where, agent, sets, mode=mode, **how)


def _range_of(ctx: CommandContext, place: Place, start: str) -> str:
    """The range that SEL and --from name together."""
    first, _, last = place.text.partition("..")
    last = last or first
    if start:
        begin = ctx.place(start)
        if begin.named or begin.is_range:
            raise click.UsageError("--from names one place of the same session, such as @4")
        first, last = begin.text, last or "@"
    text = first + (f"..{last}" if last and last != first else "")
    if text:
        find_span(place.session, text)  # its error suggests what is near
    return text


def changes_of(changes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The key and value of each --set; @FILE is replaced by the content of the file."""
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


def _show_plan(ctx: CommandContext, session: Session[Any], where: str, sets: dict[str, str]) -> int:
    plan = session.calls.workflow(where)
    if sets:
        texts = {p.name for p in plan.parameters if isinstance(p.value, str)} | {str(p.value) for p in plan.parameters}
        plan = plan.with_values({name: text if name in texts else json_or_text(text) for name, text in sets.items()})
    ctx.answer("plan", plan)
    return 0


def _run(ctx: CommandContext, session: Session[Any], where: str, agent: str, sets: dict[str, str], **how: Any) -> int:
    from wakelog.replay.agent_run import load_agent

    # What the agent's code prints is not part of the answer.
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
            ctx.warn(inert_line(f"the agent raised {type(exc).__name__}: {exc}"))
    report = replay.report
    ctx.answer("replay", plain_report(report), lambda: say_report(ctx, report))
    if report.fork:
        ctx.suggest(f"wakelog log {report.fork}", f"wakelog compare {where and handle(session) + where} {report.fork}")
    if refused is not None:
        raise refused
    return 0 if report.ok and not (report.state and report.mode == "strict") else NO


def _change(replay: Any, sets: dict[str, str]) -> None:
    """Changes inputs, and the data at the start."""
    for key, text in sets.items():
        if key.startswith("/data/"):
            replay.session.patch([{"op": "add", "path": key, "value": json_or_text(text)}], why="replay --set")
            continue
        word, _, number = key.partition(".")
        turns = [str(recorded.turn) for recorded in replay.turns]
        wanted = number or (turns[0] if turns else "")
        if word != "input" or wanted not in turns:
            known = ", ".join(f"input.{turn}" for turn in turns)
            raise click.UsageError(f"--set {key}: it is neither below /data/ nor one of {known}")
        replay.inputs[turns.index(wanted)] = text


shape(Recording, "session replayed=name first last turns steps", session=lambda recording: recording.log.id)
shape(RecordedTurn, "turn attempt input outcome")
shape(
    RecordedCall,
    "number turn? seq tool effect status? answerable",
    answerable=lambda step: bool(step.outcome) and not step.gone,
)
