"""Our MCP server in an agent's settings: one entry, in JSON or in TOML."""

from __future__ import annotations

import json
import tomllib
from typing import Any

from wakelog.hooks.agents import SERVER, HookedAgent, own_command
from wakelog.hooks.json_text import BadJsonError, Insertion, add_member, find, is_blank, parse, remove

Made = tuple[tuple[str, ...], ...]


def add(text: str, agent: HookedAgent, path: tuple[str, ...], store: str = "") -> tuple[list[Insertion], Made]:
    """What to insert, and the paths that this creates. Nothing if a server with our name exists."""
    command, *rest = own_command()
    entry: dict[str, Any] = {"command": command, "args": [*rest, "mcp", *(["--store", store] if store else [])]}
    if agent.name == "codex":
        return _add_table(text, entry), ()
    if agent.name == "claude-code":
        entry = {"type": "stdio", **entry}
    root = None if is_blank(text) else parse(text, comments=agent.has_comments)
    if root is not None and root.kind != "object":
        raise BadJsonError("it is not an object")
    servers = find(root, path)
    if servers is not None and servers.get(SERVER) is not None:
        return [], ()
    made = tuple(path[:n] for n in range(1, len(path) + 1) if find(root, path[:n]) is None)
    return [*add_member(text, path, SERVER, entry, comments=agent.has_comments)], made


def remove_entry(text: str, agent: HookedAgent, path: tuple[str, ...], made: Made | None = None) -> str:
    """Removes our server, and what we created around it if that is empty now."""
    if is_blank(text):
        return text
    if agent.name == "codex":
        return _remove_table(text)
    comments = agent.has_comments
    if find(parse(text, comments=comments), (*path, SERVER)) is None:
        return text
    text = remove(text, (*path, SERVER), comments=comments)
    for each in sorted(made or (), key=len, reverse=True):
        node = find(parse(text, comments=comments), each)
        if node is not None and node.kind == "object" and not node.members:
            text = remove(text, each, comments=comments)
    return text


# TOML: a table at the end of the file


def _tables(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as exc:
        raise BadJsonError(f"it is not TOML: {exc}") from exc


def _add_table(text: str, entry: dict[str, Any]) -> list[Insertion]:
    tables = _tables(text)
    if SERVER in tables.get("mcp_servers", {}):
        return []
    newline = "\r\n" if "\r\n" in text else "\n"
    lines = [f"[mcp_servers.{SERVER}]", *(f"{key} = {json.dumps(value)}" for key, value in entry.items()), ""]
    gap = "" if not text else newline if text.endswith("\n") else newline * 2
    inserted = Insertion(len(text), gap + newline.join(lines))
    wanted = {**tables, "mcp_servers": {**tables.get("mcp_servers", {}), SERVER: entry}}
    try:
        is_right = tomllib.loads(text + inserted.text) == wanted
    except tomllib.TOMLDecodeError:
        is_right = False
    if not is_right:
        raise BadJsonError("mcp_servers is written as one value; write it as [mcp_servers.NAME] tables")
    return [inserted]


def _remove_table(text: str) -> str:
    if SERVER not in _tables(text).get("mcp_servers", {}):
        return text
    import tomlkit

    document = tomlkit.parse(text)
    servers: Any = document["mcp_servers"]
    del servers[SERVER]
    if not servers:
        del document["mcp_servers"]
    return tomlkit.dumps(document)
