"""`wakelog preferences`: what people prefer, for one project or all."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import click

from wakelog.cli.commands.patterns import WithList
from wakelog.cli.context import CommandContext, common
from wakelog.cli.options import all_projects_option, limit_option, why_option
from wakelog.cli.render.results import shape
from wakelog.cli.text import fit, inert_line
from wakelog.store.preferences import PossiblePreference, Preference

_person = click.option("--person", default="", metavar="WHO", help="Keep it for this person (default: for everybody).")
_everywhere = click.option("--everywhere", is_flag=True, help="Keep it for all projects, not only for this folder's.")
shape(Preference, "id text project? person? known source timestamp=at:iso")
shape(PossiblePreference, "session name? item kind text turn seq roots")


@click.group("preferences", cls=WithList)
def preferences_command() -> None:
    """Show the preferences of people. The brief of a session has those that apply to it. Without a command, `list`.

    The label `person` says whose session it is.

    Examples:
      wakelog preferences
      wakelog preferences add "run the linter before each commit"
      wakelog preferences rm 1f0c2a
    """


@preferences_command.command("list")
@all_projects_option
@common
def list_preferences(ctx: CommandContext, everything: bool) -> int:
    """List the preferences that apply in this folder's project, each with its source. The exit code is 1 when there is
    none.

    Examples:
      wakelog preferences list -A
    """
    project = None if everything else (ctx.store.known.here()[1] or "")
    preferences = list(ctx.store.preferences.all(project=project))
    lines = chain.from_iterable(_lines(ctx, preference) for preference in preferences)
    code = ctx.answer_found("preferences", preferences, preferences, lambda: lines, "no preferences are kept")
    if not preferences:
        ctx.suggest('wakelog preferences add "…"', "wakelog preferences derived")
    return code


@preferences_command.command("add")
@click.argument("text")
@_person
@_everywhere
@why_option
@common
def add_preference(ctx: CommandContext, text: str, person: str, everywhere: bool, why: str) -> None:
    """Keep a preference for this folder's project, in one sentence.

    Examples:
      wakelog preferences add "use pnpm, not npm"
      wakelog preferences add "answer in French" --everywhere --person ann
    """
    project = "" if everywhere else (ctx.store.known.here()[1] or "")
    preference = ctx.store.preferences.add(text, project=project, person=person, why=why)
    ctx.answer("preference", preference, _lines(ctx, preference))
    ctx.suggest(f"wakelog preferences rm {preference.id}")


@preferences_command.command("derived")
@all_projects_option
@limit_option(20, "Show at most N.", least=1, most=200)
@common
def derived_preferences(ctx: CommandContext, everything: bool, limit: int) -> int:
    """List what users said in the newest sessions that may hold in others too. Nothing is kept until you accept it.

    Examples:
      wakelog preferences derived
    """
    project = None if everything else ctx.store.known.here()[1]
    preferences = list(ctx.store.preferences.derived(project=project, limit=limit))

    def lines() -> Iterator[str]:
        for item in preferences:
            times = f"  {item.roots} sessions" if item.roots > 1 else ""
            place = f"{item.name or item.session}@{item.item}"
            yield f"{ctx.style(inert_line(place), fg='cyan')}  {item.kind}{times}"
            yield "  " + fit(inert_line(item.text), ctx.columns - 2)

    none = "nothing was said that could be a preference"
    code = ctx.answer_found("possible-preferences", preferences, preferences, lines, none)
    if preferences:
        first = preferences[0]
        ctx.suggest(f"wakelog preferences accept {first.name or first.session}@{first.item}")
    return code


@preferences_command.command("accept")
@click.argument("where", metavar="SESSION@ITEM")
@_person
@_everywhere
@why_option
@common
def accept_preference(ctx: CommandContext, where: str, person: str, everywhere: bool, why: str) -> None:
    """Keep a preference that `derived` listed. Only its position is stored, so erasing its source removes it too.

    Examples:
      wakelog preferences accept fix-bug@e17
    """
    name, sign, item = where.rpartition("@")
    if not sign:
        raise click.UsageError("name the session and the item, as in fix-bug@e17")
    session = ctx.session(name)
    project = "" if everywhere else None
    preference = ctx.store.preferences.accept(session, item, project=project, person=person, why=why)
    ctx.answer("preference", preference, _lines(ctx, preference))


@preferences_command.command("rm")
@click.argument("id")
@why_option
@common
def remove_preference(ctx: CommandContext, id: str, why: str) -> None:
    """Remove a preference: no brief shows it any more.

    Examples:
      wakelog preferences rm 1f0c2a
    """
    ctx.store.preferences.remove(id, why=why)
    ctx.answer("preference-removed", {"id": id}, f"the preference {id} is removed")


def _lines(ctx: CommandContext, preference: Preference) -> Iterator[str]:
    scope = " and ".join(
        filter(
            None, (preference.project and f"in {preference.project}", preference.person and f"for {preference.person}")
        )
    )
    session, _, seq = preference.source.rpartition("@")
    note = f"{scope or 'everywhere'}, {preference.known}, {session}@e{seq}"
    yield f"{ctx.style(preference.id, fg='cyan')}  {fit(inert_line(preference.text), ctx.columns - 8)}"
    yield ctx.style(f"        {inert_line(note)}", dim=True)
