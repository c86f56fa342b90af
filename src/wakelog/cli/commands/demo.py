"""`wakelog demo`: creates sessions to play with, in a scratch store."""

from __future__ import annotations

import difflib
import shlex
import time

import click
import msgspec

from wakelog.cli.commands.ui import check_page, open_page
from wakelog.cli.context import CommandContext, common, hide_password
from wakelog.cli.demo import DAY_US, DEMOS, BuiltDemo, build, refuse_own_sessions
from wakelog.cli.output import Progress
from wakelog.cli.selectors import find_time
from wakelog.cli.shell_completion import complete_demo
from wakelog.errors import NotFoundError
from wakelog.model.short_text import pluralize
from wakelog.store import open as open_store

FOLDER = "wakelog-demo"


@click.command("demo")
@click.argument("name", required=False, default="fix-bug", shell_complete=complete_demo)
@click.option(
    "--into", type=click.Path(file_okay=False), help=f"Use this folder, or the store of a URL (default: ./{FOLDER})."
)
@click.option("--at", "when", metavar="TIME", help="Set the time of the demo (default: a fixed day; fleet: now).")
@click.option("--list", "listing", is_flag=True, help="List the demos.")
@click.option("--ui", "with_page", is_flag=True, help="Open the web page on them, and allow changes.")
@common
def demo_command(
    ctx: CommandContext, name: str, into: str | None, when: str | None, listing: bool, with_page: bool
) -> None:
    """Create sessions to play with in a scratch store. Works offline, and gives the same sessions each time.

    \b
    fix-bug     a bug hunt in 12 turns: attempts, files, decisions and a fork
    injection   a web page with hidden text becomes an action, and is flagged
    crash       killed in the middle of a call, resumed; no effect is repeated
    tampered    one altered byte, and the proof
    transcript  a session of Claude Code, imported; nothing in it was declared
    learning    a dead end and a recipe that the next session gets; a plan to run
    fleet       40 sessions: working, waiting, stuck, over budget, paused, done
    big         one session of 100,000 events
    all         all of them

    Examples:
      wakelog demo
      wakelog demo all --into /tmp/play
      wakelog demo all --ui
    """
    if with_page:
        check_page()
    if listing:
        shown = [{"name": d.name, "shows": d.shows} for d in DEMOS.values()]
        ctx.answer("demos", shown, "\n".join(f"{d.name:<11} {d.shows}" for d in DEMOS.values()))
        return
    names = list(DEMOS) if name == "all" else [_check_name(name)]
    folder = into or ctx.given_url or FOLDER
    built: list[BuiltDemo] = []
    with open_store(folder) as store:
        refuse_own_sessions(store, folder)
        for demo in (DEMOS[name] for name in names):
            now = time.time_ns() // 1000
            at = find_time(ctx, when, now) or (now if demo.is_live else DAY_US)
            with Progress(ctx, f"building {demo.name}", demo.events) as progress:
                built.append(build(demo.name, store.engine, at_us=at, progress=progress))
    if with_page:
        open_page(ctx, folder, may_write=True)
        return
    commands = [f"wakelog --store {shlex.quote(folder)} {c}" for n in names for c in DEMOS[n].commands]
    data = [{**msgspec.to_builtins(b), "store": folder, "commands": commands} for b in built]
    ctx.answer("demo", data, lambda: _show(ctx, built, folder, names))


def _check_name(name: str) -> str:
    if name not in DEMOS:
        near = difflib.get_close_matches(name, [*DEMOS, "all"], 1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(DEMOS)}, all"
        raise NotFoundError(f"there is no demo {name!r}", kind="demo-not-found", hint=hint)
    return name


def _show(ctx: CommandContext, built: list[BuiltDemo], folder: str, names: list[str]) -> None:
    for demo in built:
        what = f"{pluralize(len(demo.sessions), 'session')}, {pluralize(demo.events, 'event')}"
        state = what if demo.is_new else "was there already"
        ctx.say(f"{ctx.style(f'{demo.demo:<10}', bold=True)} {state}: {DEMOS[demo.demo].shows}")
    ctx.say("")
    when_done = "" if "://" in folder else ": delete the folder when you are done"
    folder = hide_password(folder)
    ctx.say(f"In {folder}, a scratch store{when_done}. Try:")
    ctx.say("")
    ctx.say(f"  export WAKELOG_STORE={shlex.quote(folder)}")
    for name in names:
        for command in DEMOS[name].commands[: 4 if len(names) == 1 else 1]:
            ctx.say(f"  wakelog {command}")
