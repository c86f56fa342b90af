"""`wakelog diff` and `files`: what changed between two points, by whom and why."""

from __future__ import annotations

import contextlib
import functools
from pathlib import Path
from typing import Any

import click
import msgspec

from wakelog.cli.context import CommandContext, common
from wakelog.cli.errors import NO
from wakelog.cli.options import place_argument
from wakelog.cli.render.changes import FileLines, change_lines, count_by_sign
from wakelog.cli.render.insight import WHY, derive_insight, insight_lines
from wakelog.cli.render.results import plain, shape
from wakelog.cli.render.sessions import handle, identity, title
from wakelog.cli.render.table import Cell, Row, say_table
from wakelog.cli.selectors import Place, find_place, find_span
from wakelog.cli.shell_completion import complete_selector
from wakelog.cli.text import age, fit, glyph, inert_line, name_some
from wakelog.diff.turn_diff import TurnDiff
from wakelog.errors import InvalidInputError, WakelogError
from wakelog.insight.items import Insight
from wakelog.log.reader import Entry
from wakelog.model.ids import Seq
from wakelog.model.short_text import pluralize
from wakelog.session import Session
from wakelog.session.run_diff import are_runs
from wakelog.timeline.files import ChangedFile, ChangedFiles

_COLUMNS = "file 24~ | change -3 | > times | > lines -2 | turns 6 | by 8 | event | > age -1"


SUBAGENTS_MAX = 200
"""How many sub-agents are asked whether they changed files."""
DERIVED_TURNS_MAX = 10
"""Derived insight is shown for at most this many turns; for more it would be too long to read."""


class _Point(msgspec.Struct, frozen=True):
    """One of the two points to compare, and its event; None is before the first event."""

    session: Session[Any]
    seq: Seq
    entry: Entry | None

    @classmethod
    def at(cls, session: Session[Any], seq: Seq) -> _Point:
        return cls(session, seq, session.log.entry(seq) if seq else None)

    @property
    def turn(self) -> int:
        """The newest turn here. An event between turns has none in its header, so the state says."""
        if self.entry is None:
            return 0
        return self.entry.header.turn or self.session.state(self.seq).turn.number

    @property
    def label(self) -> str:
        if self.entry is None:
            return "@0"
        turn = f"@{self.entry.header.turn} " if self.entry.header.turn else ""
        return f"{turn}e{self.seq} c:{self.entry.hash.hex()[:8]}"

    def plain(self) -> dict[str, Any]:
        turn, hash_ = (self.entry.header.turn, self.entry.hash.hex()) if self.entry else (0, "")
        return {**identity(self.session), "seq": self.seq, "turn": turn or None, "hash": hash_ or None}


class _Pair(msgspec.Struct, frozen=True):
    """The two points to compare."""

    a: _Point
    b: _Point

    @property
    def in_one_session(self) -> bool:
        return self.a.session.id == self.b.session.id


class _PathsLast(click.Command):
    """A command whose arguments after `--` are paths."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta["wakelog.paths"] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


@click.command("diff", cls=_PathsLast)
@click.argument("places", nargs=-1, metavar="[A] [B] [KEY] [-- PATH...]", shell_complete=complete_selector)
@click.option("--files", is_flag=True, help="Show changed lines of files, if they were captured.")
@click.option("--stat", is_flag=True, help="Show only how much changed in each part.")
@click.option("--patch", is_flag=True, help="Print the change as a JSON Patch (RFC 6902).")
@click.option("--exit-code", is_flag=True, help="Exit with 1 when something differs.")
@common
def diff_command(
    ctx: CommandContext, places: tuple[str, ...], files: bool, stat: bool, patch: bool, exit_code: bool
) -> int:
    """Show what changed from A to B: state, decisions and files, each change with its event, tool, turn and reason.

    Without points: what the last turn changed. One turn, event or commit: what that changed. One time or checkpoint:
    what changed since. @3..@7 means the same as @3 @7; for changes since turn 3, write @3 @. Points may lie in
    different sessions: fix-auth@5 try-redis@7. For two runs, such as two trials of one task, the first different call
    and the totals are shown. KEY (a JSON Pointer) shows only the changes below it.

    With --files, or paths after --, the contents of files are compared instead.

    Examples:
      wakelog diff @5 @6
      wakelog diff fix-auth@7 --files -- src
    """
    key, spots = _split_arguments(places)
    pair = _pair(*map(functools.partial(find_place, ctx), spots or [""]))
    paths = click.get_current_context().meta.get("wakelog.paths", [])
    if files or paths:
        if key or patch:
            raise click.UsageError("--files compares files: KEY and --patch are about the state")
        return _diff_files(ctx, pair, paths, stat, exit_code)
    a, b = pair.a, pair.b
    diff = a.session.diff(a.seq, b.seq, other=b.session)
    if key:
        diff = _keep_below(diff, key)
    if patch and ctx.is_for_people:
        ctx.print_json(diff.patch)
    else:
        turns = _turns(pair) if not key else -1
        insight = derive_insight(a.session, f"e{a.seq + 1}..e{b.seq}") if 0 <= turns <= DERIVED_TURNS_MAX else None
        ctx.answer("diff", _plain(pair, diff, insight), lambda: _show(ctx, pair, diff, stat, turns, insight, key))
        _suggest(ctx, pair, diff)
    return NO if exit_code and (diff.changes or diff.patch) else 0


def _diff_files(ctx: CommandContext, pair: _Pair, paths: list[str], stat: bool, exit_code: bool) -> int:
    from wakelog.cli.render.files import diff_lines, stat_lines

    diffs = pair.a.session.files.diff(pair.a.seq, pair.b.seq, other=pair.b.session, paths=paths)

    def show() -> None:
        _say_heading(ctx, pair)
        if not diffs:
            ctx.say("no change of a file was recorded")
        ctx.say_all(stat_lines(ctx, diffs) if stat and diffs else ())
        for diff in diffs if not stat else ():
            ctx.say_all(diff_lines(ctx, diff))

    ctx.answer("file-diff", {"a": pair.a.plain(), "b": pair.b.plain(), "files": diffs}, show)
    return NO if exit_code and diffs else 0


def _split_arguments(places: tuple[str, ...]) -> tuple[str, list[str]]:
    keys = [p for p in places if p.startswith("/") and not Path(p).is_file()]  # a transcript names its session
    spots = [p for p in places if p not in keys]
    if len(keys) > 1 or len(spots) > 2:
        raise click.UsageError("diff takes at most two points and one key, as in: wakelog diff @5 @6 /data/plan")
    if len(spots) == 2 and (ranges := [spot for spot in spots if ".." in spot]):
        raise InvalidInputError(
            f"{ranges[0]!r} is a range, where a point is expected",
            kind="bad-selector",
            hint="compare the ends: wakelog diff @3 @7",
        )
    return (keys[0] if keys else ""), spots


def _pair(a: Place, b: Place | None = None) -> _Pair:
    if b is None:
        first, last = a.change
        return _Pair(_Point.at(a.session, first), _Point.at(a.session, last))
    other = b.session if b.named else a.session
    first, last = find_span(a.session, a.text or "@").last, find_span(other, b.text or "@").last
    return _Pair(_Point.at(a.session, first), _Point.at(other, last))


def _keep_below(diff: TurnDiff, key: str) -> TurnDiff:
    """The diff with only the changes below, at or above a key."""

    def near(pointer: str) -> bool:
        return pointer == key or pointer.startswith(key + "/") or key.startswith(pointer + "/")

    changes = tuple(c for c in diff.changes if near(c.pointer))
    return msgspec.structs.replace(diff, changes=changes, patch=[op for op in diff.patch if near(op["path"])])


def _file_lines(pair: _Pair) -> FileLines:
    """Lines added and removed in each file between the points, if one leads to the other."""
    lines: FileLines = {}
    a, b = pair.a, pair.b
    shared = a.seq if pair.in_one_session else 0
    fork = None if shared else b.session.head.fork
    if fork and fork.parent == a.session.id:
        shared = min(fork.at, a.seq)
    if b.seq > shared and (shared or pair.in_one_session):
        entries = list(b.session.events(after=shared, upto=b.seq, kind=("file.changed", "history.rewound")))
        changed = [entry for entry in entries if entry.kind == "file.changed"]
        # The view differs from the whole range only if there was a rewind.
        view = b.session.log.view(b.seq) if len(changed) < len(entries) else [(1, b.seq)]
        for entry in changed:
            if not any(first <= entry.seq <= last for first, last in view):
                continue  # from an attempt that was rewound: the next attempt has the same change
            path, body = str(entry.body.get("path", "")), entry.body
            added, removed = lines.get(path, (0, 0))
            lines[path] = (added + body.get("added", 0), removed + body.get("removed", 0))
    return lines


def _turns(pair: _Pair) -> int:
    """How many turns are between two points of one session; -1 for other pairs."""
    return pair.b.turn - pair.a.turn if pair.in_one_session and pair.b.seq > pair.a.seq else -1


def _plain(pair: _Pair, diff: TurnDiff, insight: Insight | None) -> dict[str, Any]:
    return {
        "a": pair.a.plain(),
        "b": pair.b.plain(),
        "changes": diff.changes,
        "decisions": diff.decisions,
        "patch": diff.patch,
        "first_call": plain(diff.first_call),
        "derived": [item for item in insight.items if item.kind in WHY] if insight else [],
    }


def _show(
    ctx: CommandContext, pair: _Pair, diff: TurnDiff, stat: bool, turns: int, insight: Insight | None, key: str
) -> None:
    _say_heading(ctx, pair)
    if not stat and _are_runs(pair):
        _say_runs(ctx, pair)
    if not diff.changes:
        ctx.say(f"no change at or below {inert_line(key)}" if key else "no change")
    elif stat:
        for part in dict.fromkeys(c.part for c in diff.changes):
            ctx.say(f"  {part:<12}{count_by_sign(diff.of(part))}")
    else:
        ctx.say_all(change_lines(ctx, diff, _file_lines(pair)))
    if insight and not stat:
        ctx.say_all(insight_lines(ctx, insight, WHY, files=False))
    if turns > DERIVED_TURNS_MAX and not stat:
        few = f"ask for fewer, or wakelog insight {handle(pair.a.session)}@N"
        ctx.remark(f"~ nothing is derived over {turns} turns, only up to {DERIVED_TURNS_MAX}: {few}")


def _are_runs(pair: _Pair) -> bool:
    return are_runs(pair.a.session, pair.a.seq, pair.b.session, pair.b.seq)


def _say_runs(ctx: CommandContext, pair: _Pair) -> None:
    """The first call that differs between two runs, the words that led to it, and the totals of each run."""
    from wakelog.cli.render.comparison import first_call_lines, sum_lines

    compared = pair.a.session.history.compare(pair.b.session)
    first = compared.pairs[0]
    if first.first_call is not None:
        ctx.say_all(first_call_lines(ctx, first, (pair.a.session.log, pair.b.session.log), "AB"))
    else:
        ctx.say("no call differs" if first.divergence else "no step differs")
    ctx.say_all(sum_lines(ctx, compared.courses))


def _say_heading(ctx: CommandContext, pair: _Pair) -> None:
    names = [fit(str(point.session), ctx.columns // 4) for point in (pair.a, pair.b)]
    other = "" if pair.in_one_session else f"{names[1]}  "
    heading = f"{names[0]}  {pair.a.label} {glyph('arrow')} {other}{pair.b.label}"
    ctx.say(ctx.style(fit(heading, ctx.columns), bold=True))


def _suggest(ctx: CommandContext, pair: _Pair, diff: TurnDiff) -> None:
    name = handle(pair.b.session)
    seqs = [c.writer.seq for c in diff.changes if c.writer and c.part in ("decisions", "data")]
    if _are_runs(pair):
        ctx.suggest(f"wakelog compare {handle(pair.a.session)} {name}")
        return
    ctx.suggest(*[f"wakelog show -s {name} e{seq}" for seq in seqs[:1]], f"wakelog log {name}")


@click.command("files")
@place_argument("where", "[SEL]")
@click.option(
    "--last",
    "-n",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    help="Look at the last N turns; 0 looks at all.",
)
@common
def files_command(ctx: CommandContext, where: str, last: int) -> None:
    """List the files that the last turns changed, the last changed one first: how often, in which turns, by which tool.

    Turns that were rewound do not count. Changes outside of turns are listed with --last 0.

    Examples:
      wakelog files
      wakelog files fix-auth --last 1
      wakelog files fix-auth@4 --last 0 --json
    """
    place = ctx.place(where)
    session = place.session
    files = session.files.modified(last, at=place.seq)
    data = {**identity(session), "turns": files.turns, "files": files.files}

    def human() -> None:
        ctx.say(f"{title(ctx, session)}  {_about(files, last)}")
        say_table(ctx, _COLUMNS, [_row(ctx, file) for file in files.files])
        if last and (others := _others(session, files, place.seq)):
            ctx.remark(f"{others} (--last 0 shows all)")
        if by_subagents := _of_subagents(ctx, session):
            ctx.remark(by_subagents)

    ctx.answer("files", data, human, records=({"session": session.id, **plain(file)} for file in files.files))
    if files.files:
        ctx.suggest(f"wakelog show -s {handle(session)} e{files.files[0].seq}", f"wakelog diff {handle(session)} -- .")


def _others(session: Session[Any], found: ChangedFiles, at: Seq | None) -> str:
    """How much changed before these turns and outside of turns; empty if nothing did."""
    shown = {file.path: file.changes for file in found.files}
    known = session.log.state(session.seq(at))["files_modified"]
    others = {path: used["changes"] - shown.get(path, 0) for path, used in known.items()}
    changes = sum(count for count in others.values() if count > 0)
    files = sum(path not in shown for path in known)
    if not changes:
        return ""
    more = f", in {pluralize(files, 'more file')}" if files else ""
    first = found.turns[0] if found.turns else 1
    where = f"before @{first} or outside of turns" if first > 1 else "outside of turns"
    return f"{pluralize(changes, 'other change')}{more}, {where}"


def _of_subagents(ctx: CommandContext, session: Session[Any]) -> str:
    """Which sub-agents changed files; these are listed with their own sessions only."""
    names = []
    for id in list(session.log.part("subagents"))[:SUBAGENTS_MAX]:
        with contextlib.suppress(WakelogError):  # its transcript may be missing
            child = ctx.store.resume(id)
            if child.log.part("files_modified"):
                names.append(handle(child))
    if not names:
        return ""
    return f"{pluralize(len(names), 'sub-agent')} changed files too, see wakelog files of {name_some(names, 2)}"


def _about(found: ChangedFiles, last: int) -> str:
    count = len(found.files)
    files = f"{count or 'no'} file{'s' if count != 1 else ''} changed"
    if found.turns:
        first, newest = found.turns[0], found.turns[-1]
        return f"{files} in @{first}" + (f"..@{newest}" if newest != first else "")
    return f"{files} in a turn" if last else files


def _row(ctx: CommandContext, file: ChangedFile) -> Row:
    mark = f"{glyph('warn')} " if file.trust != "trusted" else ""
    return (
        Cell(file.path, {"bold": True}),
        file.change,
        str(file.changes),
        f"+{file.added} {glyph('minus')}{file.removed}" if file.added or file.removed else "",
        " ".join(f"@{turn}" for turn in file.turns),
        f"{mark}{file.tool}",
        Cell(f"e{file.seq}", {"fg": "cyan"}),
        age(file.at, ctx.store.clock()).removesuffix(" ago"),
    )


shape(ChangedFile, "path change changes turns tool? event=seq at:iso added removed trust")
