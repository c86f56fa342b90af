"""`wakelog known`: what earlier sessions knew about a file, a key, an address or an error."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import click

from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import all_projects_option, limit_option
from wakelog.cli.render.known import known_lines, like_lines, place_of
from wakelog.cli.selectors import find_time
from wakelog.cli.text import inert_line
from wakelog.knowledge.lines import KnownThing
from wakelog.knowledge.recall import TOKENS, PastLines
from wakelog.knowledge.things import LINES, Aspect

F = TypeVar("F", bound=Callable[..., Any])
lines_option = limit_option(LINES, "Show at most N lines.", least=1, most=1000)


def _times(function: F) -> F:
    function = click.option("--as-of", metavar="T", help="Show facts that held at that time.")(function)
    return click.option("--known-at", metavar="T", help="Show facts that were stored by that time.")(function)


def _project(ctx: CommandContext, everything: bool, subject: str = "") -> tuple[str, str | None]:
    """The subject as its project names it, and the project of this folder; None means all projects."""
    named, project = ctx.store.known.here(subject)
    return (subject, None) if everything else (named, project)


def _answer(ctx: CommandContext, thing: KnownThing, *, everything: bool, none: str = "") -> int:
    """Answers with what was found, or with the sentence `none`."""
    lines = partial(_lines, ctx, thing, everything, "; -n shows more of them")
    code = ctx.answer_found("known", thing, thing.lines, lines, none or f"nothing is known about {thing.subject}")
    if thing.lines:
        first = thing.lines[0]
        ctx.suggest(f"wakelog show {place_of(first.session, first.name, first.turn, first.seq)}")
    return code


def _lines(ctx: CommandContext, found: KnownThing | PastLines, everything: bool, rest: str) -> Iterator[str]:
    yield from known_lines(ctx, found.lines, projects=everything)
    if found.more:
        yield ctx.style(f"  and {found.more} more{rest}", dim=True)


class _KnownGroup(click.Group):
    """Its commands; any other word is taken for what somebody asks about, and the error says how to ask."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as exc:
            asked = shlex.join(args[:1])
            raise click.UsageError(f"{exc.message} Did you mean: wakelog known about {asked}?", ctx) from exc


@click.group("known", cls=_KnownGroup)
def known_command() -> None:
    """Ask what earlier sessions knew. Each line names the event it comes from; ~ marks what was derived, not recorded.

    The project is the repository of this folder, with all its worktrees; -A asks across all projects. The exit code is
    1 when nothing is known.

    Examples:
      wakelog known about src/auth.py
      wakelog known about deploy.region --as-of 2026-11-01
      wakelog known like "yesterday's export job"
    """


@known_command.command("about")
@click.argument("subject", metavar="PATH|KEY|URL")
@all_projects_option
@lines_option
@_times
@common
def about(
    ctx: CommandContext, subject: str, everything: bool, limit: int, as_of: str | None, known_at: str | None
) -> int:
    """Show what is known about a file, a fact's key, an address, a commit or an error's signature.

    Facts that hold come first, contradicting ones side by side; then what was given up, what failed, what was decided,
    and who touched it.

    Examples:
      wakelog known about src/auth.py
      wakelog known about https://api.example.com/v2
    """
    named, project = _project(ctx, everything, subject)
    held, stored = find_time(ctx, as_of) or None, find_time(ctx, known_at) or None
    thing = ctx.store.known.about(named, project=project, limit=limit, as_of=held, known_at=stored)
    return _answer(ctx, thing, everything=everything)


def _add_aspect(verb: Aspect, metavar: str, none: str, text: str) -> None:
    """Adds a command that asks one question about a subject."""

    @known_command.command(verb, help=f"{text}\n\nExamples:\n  wakelog known {verb} src/auth.py")
    @click.argument("subject", metavar=metavar)
    @all_projects_option
    @lines_option
    @common
    def command(ctx: CommandContext, subject: str, everything: bool, limit: int) -> int:
        named, project = _project(ctx, everything, subject)
        thing = ctx.store.known.about(named, aspect=verb, project=project, limit=limit)
        return _answer(ctx, thing, everything=everything, none=f"{none} {named}")


_add_aspect(
    "failed", "PATH|URL", "nothing is known to have failed at", "Show what failed here before, and what was given up."
)
_add_aspect(
    "decisions",
    "PATH|KEY|URL",
    "no decision is known about",
    "Show the decisions that name a thing, and those made in a turn that changed it (marked ~).",
)
_add_aspect(
    "who",
    "PATH|KEY|URL",
    "no session is known to have touched",
    "Show which sessions and agents ever touched a thing, and how.",
)


@known_command.command("facts")
@click.argument("key", required=False, default="")
@all_projects_option
@lines_option
@_times
@common
def facts(ctx: CommandContext, key: str, everything: bool, limit: int, as_of: str | None, known_at: str | None) -> int:
    """Show the facts that hold across sessions, the newest first.

    A later value replaces an earlier one only if its writer knew the earlier one. Otherwise both are shown, as
    contradicting.

    Examples:
      wakelog known facts
      wakelog known facts deploy.region --known-at yesterday
    """
    held, stored = find_time(ctx, as_of) or None, find_time(ctx, known_at) or None
    project = _project(ctx, everything)[1]
    thing = ctx.store.known.facts(key or None, project=project, limit=limit, as_of=held, known_at=stored)
    return _answer(ctx, thing, everything=everything, none=f"no fact is known{f' under {key}' if key else ''}")


@known_command.command("conflicts")
@all_projects_option
@lines_option
@common
def conflicts(ctx: CommandContext, everything: bool, limit: int) -> int:
    """Show facts that contradict each other, side by side.

    Examples:
      wakelog known conflicts -A
    """
    thing = ctx.store.known.facts(None, project=_project(ctx, everything)[1], conflicts=True, limit=limit)
    return _answer(ctx, thing, everything=everything, none="no facts contradict each other")


@known_command.command("path")
@click.argument("a")
@click.argument("b")
@all_projects_option
@common
def path(ctx: CommandContext, a: str, b: str, everything: bool) -> int:
    """Show how two things are connected: through which sessions, and what lies between.

    Examples:
      wakelog known path src/auth.py src/session.py
    """
    (first, project), (second, _) = _project(ctx, everything, a), _project(ctx, everything, b)
    found = ctx.store.known.path(first, second, project=project)

    def lines() -> Iterator[str]:
        for step in found.steps:
            place = place_of(step.session, step.session_name, 0, step.seq)
            yield f"{ctx.style(place, fg='cyan')}  {step.kind} {inert_line(step.name)}"

    return ctx.answer_found("connections", found, found.steps, lines, "no session connects them")


@known_command.command("like")
@click.argument("words", nargs=-1, required=True)
@all_projects_option
@limit_option(5, "Show at most N sessions.", least=1, most=100)
@common
def like(ctx: CommandContext, words: tuple[str, ...], everything: bool, limit: int) -> int:
    """Find past sessions that are like some words, and say why each matched: what it was asked, its files, its tools,
    its day.

    Examples:
      wakelog known like "yesterday's export job"
    """
    sessions = ctx.store.known.like(" ".join(words), project=_project(ctx, everything)[1], limit=limit)
    shown = partial(like_lines, ctx, sessions.sessions)
    return ctx.answer_found("like", sessions, sessions.sessions, shown, "no similar session was found")


@known_command.command("recall")
@click.option("--file", "files", multiple=True, metavar="PATH", help="Name a file you are working on (repeat).")
@click.option("--error", default="", metavar="TEXT", help="Give the text of an error.")
@click.option("--goal", default="", metavar="TEXT", help="Say what you want to do.")
@click.option(
    "--tokens", type=click.IntRange(20, 10_000), default=TOKENS, show_default=True, help="Use at most N tokens."
)
@all_projects_option
@common
def recall(ctx: CommandContext, files: tuple[str, ...], error: str, goal: str, tokens: int, everything: bool) -> int:
    """Show the few lines from earlier sessions that matter for the work at hand, or nothing.

    With -s, nothing comes from that session's own fork tree, and what was shown is recorded in its log.

    Examples:
      wakelog known recall --file src/auth.py --goal "fix the login"
      wakelog known recall --error "ModuleNotFoundError: No module named 'yaml'"
    """
    named = tuple(_project(ctx, everything, file)[0] for file in files)
    past = ctx.store.known.recall(
        files=named,
        error=error,
        goal=goal,
        project=_project(ctx, everything)[1],
        session=ctx.session() if ctx.names_session else None,
        tokens=tokens,
    )

    lines = partial(_lines, ctx, past, everything, ", for which there was no room")
    return ctx.answer_found("recall", past, past.lines, lines, "nothing relevant is known")
