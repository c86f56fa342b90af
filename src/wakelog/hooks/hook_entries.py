"""Our entries among an agent's hooks: one group per event, with one command."""

from __future__ import annotations

import json

from wakelog.hooks.agents import HookedAgent, hook_command, is_ours
from wakelog.hooks.json_text import (
    BadJsonError,
    Insertion,
    JsonNode,
    add_member,
    append_item,
    find,
    insert,
    is_blank,
    parse,
    remove,
)

HOOKS = "hooks"


def add(text: str, agent: HookedAgent, *, brief: bool = False) -> tuple[list[Insertion], tuple[tuple[str, ...], ...]]:
    """What to insert into settings without our entries, and the paths that this creates."""
    _check_settings(text, agent)
    insertions: list[Insertion] = []
    made: list[tuple[str, ...]] = []
    command = hook_command(agent)
    missing = [event for event in agent.events if _events_of(text, agent).get(event) is None]
    if missing and _hooks_of(text, agent) is None:
        # All at once, so that it is one block in the file.
        made.append((HOOKS,))
        value = {event: [agent.hook_entry(event, command, brief=brief)] for event in agent.events}
        insertions += add_member(text, (), HOOKS, value, comments=agent.has_comments, spread=1)
        return insertions, ((HOOKS,), *((HOOKS, event) for event in agent.events))
    for event in agent.events:
        group = agent.hook_entry(event, command, brief=brief)
        if event in missing:
            made.append((HOOKS, event))
            step = [*add_member(text, (HOOKS,), event, [group], comments=agent.has_comments)]
        else:
            step = [*append_item(text, (HOOKS, event), group, comments=agent.has_comments)]
        insertions += step
        text = insert(text, step)
    return insertions, tuple(made)


def remove_entries(text: str, agent: HookedAgent, made: tuple[tuple[str, ...], ...] | None = None) -> str:
    """Removes our entries. Empty objects and lists that we created around them are removed too; without a receipt, all
    that are empty now because of the removal."""
    if is_blank(text):
        return text
    _check_settings(text, agent)
    left = text
    for event in _events_of(text, agent):
        left = _remove_event(left, agent, event, made)
    hooks = _hooks_of(left, agent)
    is_empty = hooks is not None and hooks.kind == "object" and not hooks.members
    if left != text and is_empty and (made is None or (HOOKS,) in made):
        left = remove(left, (HOOKS,), comments=agent.has_comments)
    return left


def _remove_event(text: str, agent: HookedAgent, event: str, made: tuple[tuple[str, ...], ...] | None) -> str:
    comments = agent.has_comments
    was = len(_events_of(text, agent)[event].members)
    for at in reversed(range(was)):
        group = _events_of(text, agent)[event].members[at][2]
        handlers = group.get("hooks") if group.kind == "object" else None
        if handlers is None or handlers.kind != "array":
            continue
        ours = [i for i, _, each in handlers.members if each.kind == "object" and is_ours(each.value.get("command"))]
        if ours and len(ours) == len(handlers.members):
            text = remove(text, (HOOKS, event, at), comments=comments)
            continue
        for index in reversed(ours):
            text = remove(text, (HOOKS, event, at, "hooks", index), comments=comments)
    left = _events_of(text, agent)[event]
    if was and not left.members and (made is None or (HOOKS, event) in made):
        text = remove(text, (HOOKS, event), comments=comments)
    return text


def registered_events(text: str, agent: HookedAgent) -> list[str]:
    """The events with one of our commands."""
    return [event for event, node in _events_of(text, agent).items() if any(map(is_ours, _commands_in(node)))]


def commands(text: str, agent: HookedAgent) -> list[str]:
    return [command for node in _events_of(text, agent).values() for command in _commands_in(node)]


def _commands_in(node: JsonNode) -> list[str]:
    groups = [group for group in node.value if isinstance(group, dict) and isinstance(group.get("hooks"), list)]
    handlers = [handler for group in groups for handler in group["hooks"] if isinstance(handler, dict)]
    return [handler["command"] for handler in handlers if isinstance(handler.get("command"), str)]


def _check_settings(text: str, agent: HookedAgent) -> None:
    """Raises BadJsonError if these are not settings that an agent would read."""
    if is_blank(text):
        return
    if not agent.has_comments:
        try:
            json.loads(text.removeprefix("\ufeff"))
        except ValueError as exc:
            raise BadJsonError(str(exc)) from exc
    root = parse(text, comments=agent.has_comments)
    if root.kind != "object":
        raise BadJsonError("it is not an object")
    hooks = root.get(HOOKS)
    if hooks is None:
        return
    if hooks.kind != "object":
        raise BadJsonError("hooks is not an object")
    for event, _, node in hooks.members:
        if event in agent.events and node.kind != "array":
            raise BadJsonError(f"hooks.{event} is not a list")


def _hooks_of(text: str, agent: HookedAgent) -> JsonNode | None:
    return None if is_blank(text) else find(parse(text, comments=agent.has_comments), (HOOKS,))


def _events_of(text: str, agent: HookedAgent) -> dict[str, JsonNode]:
    hooks = _hooks_of(text, agent)
    members = hooks.members if hooks is not None and hooks.kind == "object" else []
    return {str(event): node for event, _, node in members if node.kind == "array"}
