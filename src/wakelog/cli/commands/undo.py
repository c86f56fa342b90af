"""`wakelog undo` and `wakelog redo`: take back the newest rewind, or the newest undo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
import msgspec

from wakelog.cli.context import Context, common
from wakelog.cli.errors import PARTIAL
from wakelog.cli.shell_completion import complete_session
from wakelog.cli.text import inert
from wakelog.diff.rewind_preview import effects_between
from wakelog.session import Session
from wakelog.session.undo import Project, Undone, project_of, redo, undo

F = TypeVar("F", bound=Callable[..., Any])


def _options(function: F) -> F:
    for option in (
        click.option("--root", "roots", multiple=True, metavar="DIR", help="The project's folder, and others in use."),
        click.option("--force", is_flag=True, help="Replace files you edited since as well; copies of them are kept."),
        click.option("--no-files", is_flag=True, help="Leave files as they are."),
        click.argument("session", required=False, default="", shell_complete=complete_session),
    ):
        function = option(function)
    return function


@click.command("undo")
@_options
@common
def undo_command(ctx: Context, session: str, no_files: bool, force: bool, roots: tuple[str, ...]) -> int:
    """Takes back the newest rewind that was not yet undone; again, it walks further back.

    What was written after the rewind leaves the view and stays in the log. Files that the rewind brought back go back
    as well, but for what you edited since. Effects and erasures are not undone.

    \b
    Example:
      wakelog undo fix-bug
    """
    return _run(ctx, session, undo, "undo", no_files, roots, force)


@click.command("redo")
@_options
@common
def redo_command(ctx: Context, session: str, no_files: bool, force: bool, roots: tuple[str, ...]) -> int:
    """Takes back the newest undo, as long as nothing was rewound since; again, it walks further forward.

    \b
    Example:
      wakelog redo fix-bug
    """
    return _run(ctx, session, redo, "redo", no_files, roots, force)


def _run(
    ctx: Context,
    session: str,
    act: Callable[..., Undone],
    schema: str,
    no_files: bool,
    roots: tuple[str, ...],
    force: bool,
) -> int:
    found = ctx.session(session)

    def locate() -> Project:
        return Project(roots[0] if roots else project_of(found.log, None).folder, roots, force)

    before = found.head.seq
    undone = act(found.log, None if no_files else locate)
    data = _plain(found, undone, before)
    ctx.answer(schema, data, lambda: _show(ctx, found, undone, data))
    return PARTIAL if undone.files is not None and undone.files.is_partial else 0


def _plain(found: Session[Any], undone: Undone, before: int) -> dict[str, Any]:
    body = found.log.entry(undone.operation).body
    moved = found.log.entry(undone.head.seq).body.get("to", 0) < undone.operation
    effects = effects_between(found.log, undone.operation, before) if moved else ()
    files = None
    if undone.files is not None:
        from wakelog.cli.render.files import plain_results

        files = plain_results(undone.files.results)
    return {
        "session": found.id,
        "name": found.name,
        "operation": undone.operation,
        "mode": body.get("mode", "rewind"),
        "went_to": body["to"],
        "head": undone.head.seq,
        "left_view": before - undone.operation if moved else 0,
        "effects": msgspec.to_builtins(effects),
        "back": f"wakelog rewind -s {found.name or found.id} e{before}",
        "files": files,
        "left_files": undone.left_files,
    }


def _show(ctx: Context, found: Session[Any], undone: Undone, data: dict[str, Any]) -> None:
    name = inert(found.name or found.id, lines=False)
    what = "the adoption" if data["mode"] == "adopt" else f"the {data['mode']}"
    went = f"(it went to e{data['went_to']})" if not undone.only_files else "of files"
    ctx.say(f"{name}: took back {what} at e{undone.operation} {went}.")
    if data["left_view"]:
        ctx.say(
            f"  {data['left_view']} later events left the view and stay in the log; back to them: {inert(data['back'])}"
        )
    for effect in data["effects"]:
        tool = inert(effect["tool"], lines=False)
        ctx.say(f"  not undone: {tool} ({effect['effect']}, {effect['outcome']}) at e{effect['seq']}")
    if undone.left_files:
        ctx.say("  files were left as they are")
    if undone.files is not None:
        from wakelog.cli.render.files import result_lines

        for line in result_lines(ctx, undone.files):
            ctx.say(f"  {line}")
