"""The reference names everything there is: errors, methods of an engine, verbs, commands and options. Found here by
other means than docs/generate.py finds it, so that what that one overlooks is noticed."""

import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

import wakelog
from wakelog import engine, engines, errors
from wakelog.cli import commands
from wakelog.engine import Engine

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "wakelog"
ERRORS = (ROOT / "docs" / "reference" / "errors.md").read_text(encoding="utf-8")
PYTHON = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
CLI = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
ENGINE = (ROOT / "docs" / "reference" / "engine.md").read_text(encoding="utf-8")

CLASSES = [cls for cls in vars(errors).values() if inspect.isclass(cls) and issubclass(cls, errors.WakelogError)]


def _raised() -> set[str]:
    """Kinds as they stand in the source, in whatever is called `…Error(…)`, however it is reached."""
    found, names = {cls.kind for cls in CLASSES}, {cls.__name__ for cls in CLASSES}
    for path in SOURCE.rglob("*.py"):
        if not path.is_relative_to(SOURCE / "testing"):
            text = path.read_text(encoding="utf-8")
            for call in re.finditer(r"\b(\w+Error)\(", text):
                if call[1] not in names:
                    continue
                arguments = text[call.end() : _end_of_call(text, call.end())]
                found |= set(re.findall(r"""\bkind=["']([a-z][a-z-]*)["']""", arguments))
    return found


def _end_of_call(text: str, start: int) -> int:
    depth = 1
    for at in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[at], 0)
        if not depth:
            return at
    return len(text)


def test_the_glossary_defines_a_word_once() -> None:
    glossary = (ROOT / "docs" / "reference" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^- \*\*(.+?)\*\*", glossary, re.MULTILINE)
    assert len(words) > 150
    assert sorted(word for word, count in Counter(words).items() if count > 1) == []


def test_every_kind_of_error_is_explained() -> None:
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| [^|]+ \| ([^|]*) \|$", ERRORS, re.MULTILINE))
    raised = _raised()
    assert len(raised) > 150
    assert sorted(raised - rows.keys()) == []
    assert [kind for kind, meaning in rows.items() if not meaning.strip()] == []


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_error_and_what_it_carries_is_named(cls: type[errors.WakelogError]) -> None:
    assert cls.__name__ in ERRORS
    carried = [name for name in vars(cls("x")) if not name.startswith("_")]
    assert [name for name in carried if f"`{name}`" not in ERRORS] == []


def test_every_method_of_an_engine_makes_a_promise() -> None:
    parts = (Engine, engine.Names, engine.Leases, engine.Feed, engine.Removal)
    methods = [n for part in parts for n, each in vars(part).items() if n[0] != "_" and inspect.isfunction(each)]
    rows = dict(re.findall(r"^\| `\w+` \| `(\w+)\(.*?\| (.*) \|$", ENGINE, re.MULTILINE))
    assert [name for name in methods if not rows.get(name, "").strip()] == []


def test_everything_an_engine_may_do_beyond_is_named() -> None:
    own = [cls for cls in vars(engine).values() if inspect.isclass(cls) and cls.__module__ == "wakelog.engine"]
    abilities = [cls for cls in own if getattr(cls, "_is_protocol", False) and cls not in (Engine, engine.Pending)]
    assert len(abilities) > 5
    for cls in abilities:
        names = [name for name, each in vars(cls).items() if name[0] != "_" and inspect.isfunction(each)]
        assert [name for name in (cls.__name__, *names) if f"`{name}" not in ENGINE] == []


def test_every_engine_is_named() -> None:
    folder = Path(engines.__path__[0])
    names = {
        name for path in folder.rglob("*.py") for name in re.findall(r"^class (\w+Engine)\b", path.read_text(), re.M)
    }
    assert len(names) >= 5
    assert [name for name in sorted(names) if name not in ENGINE] == []


def test_every_public_name_is_on_the_python_page() -> None:
    assert [name for name in wakelog.__all__ if f"- `{name}" not in PYTHON] == []


@pytest.mark.parametrize("cls", [wakelog.Store, wakelog.Session, wakelog.Turn], ids=lambda cls: cls.__name__)
def test_every_verb_is_on_the_python_page(cls: type) -> None:
    variable = cls.__name__.lower()
    verbs = [name for name in dir(cls) if not name.startswith("_") and callable(getattr(cls, name))]
    assert verbs
    assert [name for name in verbs if f"\n{variable}.{name}(" not in PYTHON] == []


def test_every_command_and_option_is_on_the_command_page() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in Path(commands.__path__[0]).glob("*.py"))
    names = re.findall(r"""@(?:click|\w+)\.(?:command|group)\(\s*["']([a-z-]+)["']""", text)
    options = re.findall(r"""\boption\(\s*(?:["']-\w["'],\s*)?["'](--[a-z-]+)""", text)
    assert len(names) > 40
    assert len(options) > 60
    assert [name for name in names if not re.search(rf"^#+ wakelog (\w+ )*{name}$", CLI, re.MULTILINE)] == []
    assert [name for name in options if name not in CLI] == []
