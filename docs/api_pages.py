"""The generated parts of docs/reference/python.md and docs/reference/cli.md; docs/generate.py writes them.

The Python page is read from the classes, the command page from the click tree. Nothing is listed by hand, so a renamed
verb or a new option only needs the generator to be run again.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import click

import wakelog
from docs.prose import fill
from wakelog.cli.app import app
from wakelog.cli.command_table import SECTIONS
from wakelog.cli.context import common
from wakelog.model.late_value import LateValue

WIDTH = 96


# The Python page


def _public_names(old: str) -> str:
    """Every public name with its first sentence."""
    things = {name: getattr(wakelog, name) for name in wakelog.__all__}
    rows = (f"- `{_called(name, each)}`, {_kind(each)}: {_sentence(each)}" for name, each in things.items())
    return "\n".join(fill(row, "  ") for row in rows) + "\n"


def _called(name: str, thing: Any) -> str:
    return f"{name}()" if inspect.isroutine(thing) else name


def _kind(thing: Any) -> str:
    if inspect.ismodule(thing):
        return "module"
    if inspect.isclass(thing):
        return "exception" if issubclass(thing, Exception) else "class"
    return "function"


def _functions(old: str) -> str:
    functions = [(name, getattr(wakelog, name)) for name in wakelog.__all__]
    return "\n".join(_entry("wakelog", name, each) for name, each in functions if inspect.isroutine(each))


def _verbs_of(cls: type, variable: str) -> Callable[[str], str]:
    """The verbs of a class and what it inherits, then those of its namespaces (`session.calls`)."""

    def write(old: str) -> str:
        out = []
        for owner in cls.__mro__:
            titles = _titles(owner) if owner is cls else {}
            found = list(_own_members(cls, owner))
            if found and owner is not cls:
                out.append(f"### {_sentence(owner).rstrip('.')}\n")
            for name, each in found:
                if name in titles:
                    out.append(f"### {titles[name]}\n")
                out.append(_entry(variable, name, each))
        for name, namespace in _namespaces(cls):
            out.append(f"### {variable}.{name}\n\n{fill(_sentence(namespace))}\n")
            out += [_entry(f"{variable}.{name}", verb, each) for verb, each in _own_members(namespace, namespace)]
        return "\n".join(out)

    return write


def _titles(cls: type) -> dict[str, str]:
    """The first public member below each comment of the class's body (`# Going back`), with that comment."""
    titles, title = {}, ""
    for line in inspect.getsource(cls).splitlines():
        if line.startswith("    # "):
            title = line[6:]
        elif title and (found := re.match(r"    def ([a-z]\w*)", line)):
            titles[found[1]], title = title, ""
    return titles


def _namespaces(cls: type) -> Iterator[tuple[str, type]]:
    """What a session keeps its related verbs in: late values that give an object of the session's room."""
    for name, member in vars(cls).items():
        if isinstance(member, LateValue) and not name.startswith("_"):
            # Imported inside, where it is made. `aio` has the same verbs once more.
            made = re.search(r"from (wakelog\.session\.\w+) import (\w+)", inspect.getsource(member.compute))
            if made is not None and name != "aio":
                yield name, getattr(importlib.import_module(made[1]), made[2])


def _own_members(cls: type, owner: type) -> Iterator[tuple[str, Any]]:
    """What `owner` adds to `cls`, in the order of the source."""
    if not owner.__module__.startswith("wakelog"):
        return
    for name, member in vars(owner).items():
        is_verb = inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)
        if not name.startswith("_") and is_verb and inspect.getattr_static(cls, name) is member:
            yield name, member


def _entry(variable: str, name: str, member: Any) -> str:
    """One verb: how it is called, and the first sentence of its docstring. `py` blocks are not run by the tests."""
    if isinstance(member, property):
        called = f"{variable}.{name}{_returned(inspect.signature(member.fget))}" if member.fget else name
    else:
        called = f"{variable}.{name}" + _signature(getattr(member, "__func__", member))
    said = fill(_sentence(member))
    return f"```py\n{called}\n```\n" + (f"\n{said}\n" if said else "")


def _signature(function: Callable[..., Any]) -> str:
    signature = inspect.signature(function)
    parameters = [_shown(each) for name, each in signature.parameters.items() if name not in ("self", "cls")]
    signature = signature.replace(parameters=parameters)
    short = _unquoted(str(signature))
    if len(short) <= WIDTH - 24:
        return short
    inside = _unquoted(str(signature.replace(return_annotation=inspect.Signature.empty)))[1:-1]
    lines = "".join(f"    {each},\n" for each in _split(inside))
    return f"(\n{lines}){_returned(signature)}"


class _Elided:
    def __repr__(self) -> str:
        return "…"


def _shown(parameter: inspect.Parameter) -> inspect.Parameter:
    """A default that takes more than a few words to write is left out."""
    is_long = parameter.default is not parameter.empty and len(repr(parameter.default)) > 60
    return parameter.replace(default=_Elided()) if is_long else parameter


def _split(parameters: str) -> Iterator[str]:
    """At the commas that are not inside brackets or quotes."""
    depth, start, quote = 0, 0, ""
    for place, char in enumerate(parameters):
        if quote or char in "'\"":
            quote = "" if char == quote else quote or char
        depth += (char in "([{") - (char in ")]}")
        if char == "," and not depth and not quote:
            yield parameters[start:place].strip()
            start = place + 1
    yield parameters[start:].strip()


def _returned(signature: inspect.Signature) -> str:
    returned = signature.return_annotation
    return "" if returned is inspect.Signature.empty else f" -> {_unquoted(f'-> {returned!r}')[3:]}"


def _unquoted(text: str) -> str:
    """Annotations are kept as strings: shown without their quotes, and functions and classes by their names."""
    text = re.sub(r"(: |-> )'((?:[^'\\]|\\.)*)'", r"\1\2", text)
    text = re.sub(r"""(: |-> )"((?:[^"\\]|\\.)*)\"""", r"\1\2", text)
    return re.sub(r"<function (\w+) at 0x[0-9a-f]+>|<class '(?:\w+\.)*(\w+)'>", r"\1\2", text)


def _sentence(thing: Any) -> str:
    """The first sentence of a docstring, on one line."""
    doc = inspect.cleandoc(thing.__doc__ or "").split("\n\n")[0]
    text = " ".join(doc.split())
    found = re.match(r".+?[.!?](?=\s|$)", text)
    return found[0] if found else text


# The command page


def _commands(old: str) -> str:
    out = []
    root = _context(app, "wakelog")
    for title, section in SECTIONS.items():
        out.append(f"## {title.capitalize()}\n")
        for name in section:
            command = app.get_command(root, name)
            assert command is not None
            out.append(f"### wakelog {name}\n\n{_usage(command, name, root)}")
    return "\n".join(out)


def _usage(command: click.Command, name: str, parent: click.Context) -> str:
    """Usage, help and the command's own options as `--help` prints them, then the same for each subcommand."""
    ctx = _context(command, name, parent)
    formatter = ctx.make_formatter()
    command.format_usage(ctx, formatter)
    command.format_help_text(ctx, formatter)
    # click keeps the help option that it made first, which may have been for another context.
    options = [each for each in command.get_params(ctx) if isinstance(each, click.Option) and "--help" not in each.opts]
    own = [each for each in options if _key(each) not in COMMON]
    rows = [row for each in own if (row := each.get_help_record(ctx))]
    if rows:
        with formatter.section("Options"):
            formatter.write_dl(rows)
    shown = "\n".join(line.rstrip() for line in formatter.getvalue().strip().splitlines())
    out = [f"```text\n{shown}\n```\n"]
    if isinstance(command, click.Group):
        for sub in command.list_commands(ctx):
            subcommand = command.get_command(ctx, sub)
            if subcommand is not None and not subcommand.hidden:
                out.append(f"#### {ctx.command_path} {sub}\n\n{_usage(subcommand, sub, ctx)}")
    return "\n".join(out)


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    """As wide on every terminal, and with the names of the help option that the real command line has."""
    how = {**command.context_settings, "terminal_width": WIDTH, "max_content_width": WIDTH}
    return click.Context(command, info_name=name, parent=parent, **how)


def _key(parameter: click.Parameter) -> tuple[str, ...]:
    return tuple(parameter.opts)


@click.command()
@common
def _bare(ctx: Any) -> None:
    """A command with no options but the shared ones."""


_BARE = _context(_bare, "bare", _context(app, "wakelog"))
COMMON = {_key(each): each.get_help_record(_BARE) for each in _bare.get_params(_BARE)}


def _common_options(old: str) -> str:
    rows = (f"| `{names.replace('|', ' or ')}` | {text} |" for names, text in filter(None, COMMON.values()))
    return "\n".join(["| option | what it does |", "| --- | --- |", *rows]) + "\n"


PARTS: dict[str, Callable[[str], str]] = {
    "cli-commands": _commands,
    "cli-options": _common_options,
    "python-functions": _functions,
    "python-names": _public_names,
    "python-session": _verbs_of(wakelog.Session, "session"),
    "python-store": _verbs_of(wakelog.Store, "store"),
    "python-turn": _verbs_of(wakelog.Turn, "turn"),
}
