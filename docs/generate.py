"""Writes the parts of the reference that follow from the code: `.venv/bin/python docs/generate.py`.

A page marks such a part with `<!-- generated: name -->` and `<!-- end -->`; what stands between is written here. Some
parts are tables whose last column is written by hand: it is kept, row by row, under the name in the first column.
`tests/docs/test_generated.py` fails when a page is not what this file would write, or when a row lacks its sentence.
"""

from __future__ import annotations

import ast
import inspect
import itertools
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect as shape

from wakelog import engine, errors
from wakelog.codec.chain import hash_body, join_body, link
from wakelog.codec.records import (
    PayloadCollector,
    encode_delta,
    encode_event,
)
from wakelog.engine import Engine
from wakelog.model import events as ev
from wakelog.model import machines
from wakelog.model.document import State, empty_document
from wakelog.model.records import GENESIS, Header
from wakelog.state import digest
from wakelog.state.effects import EventPlace, effect_of

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))  # for when this file is run by its path
from benchmarks import capacity  # noqa: E402
from docs import api_pages, client_types, opening, output_schemas, protocol, routes  # noqa: E402
from docs.prose import fill  # noqa: E402

SOURCE = DOCS.parent / "src" / "wakelog"
SCHEMA = DOCS / "reference" / "state.schema.json"
OUTPUTS = SOURCE / "cli" / "schemas.json"
STATUSES = ("not-opened", "open", "active", "paused", "closed", "archived", "deleted")

_PART = re.compile(r"(<!-- generated: (?P<name>[\w-]+) -->\n)(?P<text>.*?)(<!-- end -->)", re.DOTALL)


def written() -> list[Path]:
    """Every file that is written wholly or in part from the code."""
    return [*_pages(), SCHEMA, protocol.SCHEMA, client_types.FILE, opening.FILE, OUTPUTS]


def outputs() -> dict[Path, str]:
    """These files, with what should be in them."""
    out = {page: _rewritten(text) for page, text in _pages().items()}
    out[SCHEMA] = state_schema()
    out[protocol.SCHEMA] = protocol.schema()
    out[client_types.FILE] = client_types.text()
    out[opening.FILE] = opening.text()
    out[OUTPUTS] = _output_schemas()
    return out


def _output_schemas() -> str:
    page = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
    commands = "".join(path.read_text(encoding="utf-8") for path in sorted((SOURCE / "cli").rglob("*.py")))
    return output_schemas.text(page, commands, msgspec.json.decode(state_schema()))


def _pages() -> dict[Path, str]:
    texts = {page: page.read_text(encoding="utf-8") for page in sorted(DOCS.rglob("*.md"))}
    return {page: text for page, text in texts.items() if _PART.search(text)}


def rows_without_sentence(page: str) -> list[str]:
    """Names whose hand-written column is still empty."""
    parts = [match["text"] for match in _PART.finditer(page) if match["name"] in _KEPT]
    return [name for part in parts for name, sentence in _sentences(part).items() if not sentence]


def _rewritten(page: str) -> str:
    def part(match: re.Match[str]) -> str:
        write = PARTS.get(match["name"])
        return match[0] if write is None else match[1] + write(match["text"]).strip("\n") + "\n" + match[4]

    return _PART.sub(part, page)


# Tables


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(titles)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def _sentences(old: str) -> dict[str, str]:
    """The last column of a table by its first, as they stand in the page."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in old.splitlines() if line[:3] == "| `"]
    return {row[0].strip("`"): row[-1] if len(row) > 2 else "" for row in rows}


def _kept(titles: Iterable[str], rows: Iterable[list[str]], old: str) -> str:
    said = _sentences(old)
    return _table(titles, ([f"`{row[0]}`", *row[1:], said.get(row[0], "")] for row in rows))


# Types


def _say(kind: Any) -> str:
    match kind:
        case shape.IntType():
            return "integer"
        case shape.StrType():
            return "string"
        case shape.BoolType():
            return "boolean"
        case shape.NoneType():
            return "null"
        case shape.AnyType():
            return "value"
        case shape.LiteralType(values=values):
            return " or ".join(f'`"{value}"`' for value in values)
        case shape.UnionType(types=types):
            return " or ".join(map(_say, types))
        case shape.DictType(value_type=value):
            return f"object of {_say(value)}"
        case shape.TupleType(item_types=items):
            return f"[{', '.join(map(_say, items))}]"
        case shape.ListType(item_type=item) | shape.VarTupleType(item_type=item):
            return f"list of {_say(item)}"
        case shape.StructType(cls=cls):
            return f"[{cls.__name__}](#{cls.__name__.lower()})"
    raise TypeError(f"docs/generate.py has no word for {kind}")


def _fields(cls: type) -> list[shape.Field]:
    info = shape.type_info(cls)
    assert isinstance(info, shape.StructType)
    return list(info.fields)


def _default(field: shape.Field) -> str:
    if field.required:
        return ""
    value = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return f"`{msgspec.json.encode(value).decode()}`"


def _described(field: shape.Field, payloads: tuple[str, ...] = ()) -> str:
    mark = "†" if field.encode_name in payloads else ""
    default = f" = {_default(field)}" if not field.required else ""
    return f"`{field.encode_name}`{mark} {_say(field.type)}{default}"


# The format page


def _header(old: str) -> str:
    rows = [[f.encode_name, _say(f.type), _default(f) or "always there"] for f in _fields(Header)]
    return _kept(("field", "type", "left out when", "meaning"), rows, old)


def _kinds(old: str) -> str:
    """What a class says of itself is its meaning; where it says nothing, the page does."""
    shared = {field.name for field in _fields(ev.Event)}
    said = _sentences(old)
    rows = []
    for kind, cls in ev.KINDS.items():
        own = [_described(f, cls.payload_fields) for f in _fields(cls) if f.name not in shared]
        rows.append([f"`{kind}`", "; ".join(own), _docstring(cls) or said.get(kind, "")])
    return _table(("kind", "body fields", "meaning"), rows)


def _docstring(cls: type) -> str:
    text = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    return re.sub(r"\bNone\b", "null", " ".join(text.split()))


def _structs(old: str) -> str:
    out = []
    for cls in (ev.Cost, ev.Failure, ev.Replacement):
        fields = "\n".join(f"- {_described(field)}" for field in _fields(cls))
        out.append(f"#### {cls.__name__}\n\n{_docstring(cls)}\n\n{fields}\n")
    return "\n".join(out)


Move = tuple[str, str, str]
"""From, to, label."""


def _diagram(moves: Iterable[Move]) -> str:
    edges: dict[tuple[str, str], list[str]] = {}
    for origin, target, label in moves:
        if not origin and not target:
            continue  # begun and over in one event: nothing to draw
        edges.setdefault((origin or "[*]", target or "[*]"), []).append(label)
    lines = [f"    {origin} --> {target}: {', '.join(labels)}" for (origin, target), labels in edges.items()]
    return "\n".join(["```mermaid", "stateDiagram-v2", *lines, "```"]) + "\n"


def _moves_table(table: dict[str, tuple[frozenset[str], str]], order: tuple[str, ...]) -> str:
    rank = {status: i for i, status in enumerate(order)}

    def names(statuses: Iterable[str]) -> str:
        known = sorted(statuses, key=lambda status: (rank.get(status, len(rank)), status))
        return ", ".join(f"`{status}`" if status else "none yet" for status in known)

    return _table(
        ("kind", "allowed in", "leads to"),
        ([f"`{kind}`", names(origins), f"`{target}`"] for kind, (origins, target) in table.items()),
    )


def _session_machine(old: str) -> str:
    moves = [
        # The statuses of `session.forked` are the parent's: in the fork itself it is the first event.
        *(("", target, kind) for kind, (_, target) in machines.SESSION.items() if kind == "session.forked"),
        *(
            (origin, target, kind)
            for kind, (origins, target) in machines.SESSION.items()
            for origin in sorted(origins, key=lambda status: (status != "", STATUSES.index(status or "open")))
            if kind != "session.forked" and origin != target
        ),
    ]
    listed = [
        ("Accepted in every status except `deleted`", machines.ALWAYS),
        ("Also accepted while `paused`", machines.WHILE_PAUSED),
    ]
    lists = "\n".join(
        fill(f"{title}: {', '.join(f'`{kind}`' for kind in sorted(kinds))}.") + "\n" for title, kinds in listed
    )
    return f"{_moves_table(machines.SESSION, STATUSES)}\n{_diagram(moves)}\n{lists}"


def _turn_machine(old: str) -> str:
    outcomes = next(f.type.values for f in _fields(ev.TurnEnded) if f.name == "outcome")  # type: ignore[attr-defined]
    moves = [
        (origin, end, kind)
        for kind, (origins, target) in machines.TURN.items()
        for origin in sorted(origins)
        for end in (outcomes if target == "ended" else (target,))
    ]
    return f"{_moves_table(machines.TURN, ('', 'open'))}\n{_diagram(moves)}"


def _action_machine(old: str) -> str:
    order = ("", "waiting", "requested", "running", "uncertain")
    moves = [
        (origin, "" if target == "done" else target, kind.removeprefix("action."))
        for kind, (origins, target) in machines.ACTION.items()
        for origin in sorted(origins, key=order.index)
    ]
    moves.insert(1, ("", "waiting", "requested with approval"))
    for kind in ("action.failed", "action.timed_out"):
        origins = sorted(machines.ACTION[kind][0], key=order.index)
        moves += [(origin, "requested", f"{kind.removeprefix('action.')} with retry") for origin in origins]
    return f"{_moves_table(machines.ACTION, order)}\n{_diagram(moves)}"


def _leaf_rules(old: str) -> str:
    return _table(("part", "leaves"), ([f"`{part}`", _leaves_of(part)] for part in empty_document()))


def _leaves_of(part: str) -> str:
    """Which leaves a part has, found by taking a nested probe apart."""
    probe = {part: {"a": {"b": {"c": {"d": 1}}}}}
    found = [msgspec.json.decode(leaf) for leaf in digest.leaves_at(probe, [])[1:]]
    opened = [pointer for pointer, value in found if value == {}]
    if not found:
        return "none"
    if not opened:
        return f"`/{part}`, whole"
    if len(opened) == 4:
        return f"`/{part}` and every object below it, each as `{{}}`; every other value, whole"
    inside = [f"/{part}", *(f"/{part}/{name}" for name in empty_document()[part] if len(opened) > 1)]
    entry = f"/{part}" + "/…" * len(opened)
    return f"{', '.join(f'`{each}`' for each in inside)} as `{{}}`; `{entry}`, whole"


def _hash_example(old: str) -> str:
    doc = {
        "status": "active",
        "facts": {"deploy/eu": {"value": "v2", "seq": 2}},
        "data": {"done": [1, 2], "next": {}},
    }
    leaves = digest.leaves_at(doc, [])
    rows = [f"{leaf.decode()}\n    {_edge(digest.expand(leaf))}" for leaf in leaves]
    total = digest.total_of(doc)
    known = {"{}": {}, "the document that a bare `session.opened` makes": empty_document()}
    values = "\n".join(f"- {name}: `{digest.state_hash(each)}`" for name, each in known.items())
    return (
        f"```text\ndocument\n    {msgspec.json.encode(doc).decode()}\n\n"
        + "\n".join(rows)
        + f"\n\nsum\n    {_edge(total)}\n\nstate_hash\n    {digest.hash_total(total)}\n```\n\n"
        f"Two more to check against:\n\n{values}\n"
    )


def _edge(number: int) -> str:
    """A 4096-bit number's bytes, little-endian, shortened."""
    data = number.to_bytes(digest.WIDTH_BYTES, "little").hex()
    return f"{data[:24]} … {data[-24:]}"


def _chain_example(old: str) -> str:
    prev, doc, lines = GENESIS, dict[str, Any](), []
    told = [ev.SessionOpened(goal="say hello"), ev.MessageAdded(role="user", content="hello", why="first contact")]
    for seq, event in enumerate(told, 1):
        delta = effect_of(doc, event, EventPlace(seq, 0))
        if delta:
            doc = delta[0]["value"]
        body = join_body(encode_event(event, PayloadCollector({}))[0], encode_delta(delta) if delta else b"")
        salt = bytes(range(16 * (seq - 1), 16 * seq))
        header = msgspec.json.encode(
            Header(seq, event.kind, 1_700_000_000_000_000 + seq, hash_body(salt, body), actor="user")
        )
        prev = link(prev, header)
        lines += [f"salt    {salt.hex()}", f"body    {body.decode()}", f"header  {header.decode()}"]
        lines += [f"hash    {prev.hex()}", ""]
    return "\n".join(["```text", *lines[:-1], "```"])


def state_schema() -> str:
    """The JSON Schema of the state document. Where the code says string, an erased value may stand."""
    [top], parts = msgspec.json.schema_components([State], ref_template="#/$defs/{name}")
    _allow_erased(parts)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "wakelog state document, format version 1",
        **top,
        "$defs": {
            **parts,
            "Erased": {
                "title": "Erased",
                "description": "Stands for a value that was erased; the number is the event that had set it.",
                "type": "object",
                "properties": {"$erased": {"type": "integer"}},
                "required": ["$erased"],
            },
        },
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


# What erasing leaves alone: see log/mask.py.
_NEVER_ERASED = {"Turn", "View", "Lease", "Budget"}
_NEVER_ERASED_KEYS = {"status", "effect", "trust", "severity", "change", "tool", "holder", "media"}


def _allow_erased(parts: dict[str, Any]) -> None:
    for name, part in parts.items():
        if name not in _NEVER_ERASED:
            for key, value in part["properties"].items():
                if key not in _NEVER_ERASED_KEYS:
                    part["properties"][key] = _or_erased(value)


def _or_erased(value: dict[str, Any]) -> dict[str, Any]:
    erased = {"$ref": "#/$defs/Erased"}
    if value.get("type") == "string":
        note = {"default": value["default"]} if "default" in value else {}
        return {"anyOf": [{"type": "string"}, erased], **note}
    if "anyOf" in value and {"type": "string"} in value["anyOf"]:
        return {**value, "anyOf": [*value["anyOf"], erased]}
    for inner in ("items", "additionalProperties"):
        if isinstance(value.get(inner), dict):
            value = {**value, inner: _or_erased(value[inner])}
    return value


# The other pages


def error_kinds() -> dict[str, set[str]]:
    """Every kind in use, with the errors that carry it: what calls in src name, and each class's own."""
    found: dict[str, set[str]] = {}
    classes = {name for name, cls in vars(errors).items() if isinstance(cls, type) and issubclass(cls, Exception)}
    for name in classes:
        found.setdefault(getattr(errors, name).kind, set()).add(name)
    for path in sorted(SOURCE.rglob("*.py")):
        if path.is_relative_to(SOURCE / "testing"):
            continue  # errors raised there are made up
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", "") or getattr(node.func, "attr", "")  # also `errors.NotFoundError(…)`
            if name in classes:
                for kind in _kinds_named(node, getattr(errors, name).kind):
                    found.setdefault(kind, set()).add(name)
    return found


def _kinds_named(call: ast.Call, default: str) -> list[str]:
    value = next((keyword.value for keyword in call.keywords if keyword.arg == "kind"), None)
    if value is None:
        return [default]
    if isinstance(value, ast.Constant):
        return [str(value.value)]
    if isinstance(value, ast.JoinedStr) and isinstance(value.values[0], ast.Constant):
        # `session-{status}`: one kind for each status.
        return [str(value.values[0].value) + status for status in STATUSES]
    # `kind=exc.kind`: raised again with a better message; the kind is found where it was first raised.
    is_passed_on = isinstance(value, ast.Attribute) and value.attr == "kind"
    assert is_passed_on, f"line {call.lineno}: docs/generate.py cannot tell which kinds this error can have"
    return []


def _errors(old: str) -> str:
    rows = [[kind, ", ".join(f"`{name}`" for name in sorted(names))] for kind, names in sorted(error_kinds().items())]
    return _kept(("kind", "error", "meaning"), rows, old)


def _engine(old: str) -> str:
    rows = []
    for part in (Engine, engine.Names, engine.Leases, engine.Feed, engine.Removal):
        for name, method in vars(part).items():
            if not name.startswith("_") and inspect.isfunction(method):
                text = " ".join(inspect.cleandoc(method.__doc__ or "").split()).replace("|", "or")
                rows.append([f"`{part.__name__}`", f"`{name}{_signature(method)}`", text])
    return _table(("protocol", "method", "promise"), rows)


def _engine_abilities(old: str) -> str:
    """What an engine may declare beyond the protocol: the fields of `Abilities`."""
    told = _attribute_docs(engine.Abilities)
    rows = []
    for field in engine.Abilities.__struct_fields__:
        kind = engine.Abilities.__annotations__[field].removesuffix(" | None")
        cls, what = getattr(engine, kind, None), told.get(field, "")
        if not getattr(cls, "_is_protocol", False):
            rows.append([f"`{field}`", f"`{kind}`", what])
            continue
        names = [n for n, m in vars(cls).items() if inspect.isfunction(m) and (n[0] != "_" or n == "__call__")]
        methods = [f"`{n.replace('__call__', field)}{_signature(vars(cls)[n])}`" for n in names if n != "__init__"]
        rows.append(
            [f"`{field}`", "<br>".join([f"`{kind}`", *methods]), " ".join(inspect.cleandoc(cls.__doc__ or "").split())]
        )
    return _table(("ability", "what it is", "what for"), rows)


def _attribute_docs(cls: type) -> dict[str, str]:
    """The texts that stand below the fields of a class."""
    body = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(body, ast.ClassDef)
    pairs = itertools.pairwise(body.body)
    return {
        field.target.id: " ".join(str(text.value.value).split())
        for field, text in pairs
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def _signature(method: Callable[..., Any]) -> str:
    signature = inspect.signature(method)
    parameters = [p for name, p in signature.parameters.items() if name != "self"]
    text = str(signature.replace(parameters=parameters))
    # Annotations are kept as strings and printed with quotes; a table cell cannot hold a bar.
    return re.sub(r"(: |-> )'([^']*)'", r"\1\2", text).replace(" | None", " or None")


def _sqlite_schema(old: str) -> str:
    return f"```sql\n{(SOURCE / 'engines' / 'sqlite' / 'schema.sql').read_text(encoding='utf-8')}```\n"


PARTS: dict[str, Callable[[str], str]] = {
    "action-machine": _action_machine,
    "capacity": lambda _: capacity.page(),
    "chain-example": _chain_example,
    "engine": _engine,
    "engine-abilities": _engine_abilities,
    "errors": _errors,
    "hash-example": _hash_example,
    "header": _header,
    "kinds": _kinds,
    "leaf-rules": _leaf_rules,
    "session-machine": _session_machine,
    "sqlite-schema": _sqlite_schema,
    "structs": _structs,
    "turn-machine": _turn_machine,
    **api_pages.PARTS,
    **protocol.PARTS,
    **routes.PARTS,
}
_KEPT = {"errors", "header", "kinds"}


if __name__ == "__main__":
    for path, text in outputs().items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(f"wrote {path.relative_to(DOCS.parent)}")
