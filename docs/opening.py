"""What the MCP server answers to a client's first requests, for `src/wakelog/mcp/opening.json`."""

from __future__ import annotations

import json
from typing import Any

import anyio
from mcp.client.client import Client

import wakelog
from wakelog.mcp.server import build_server
from wakelog.mcp.stdio_front import DISCOVER, FILE, MODERN

__all__ = ["FILE", "text"]


def text() -> str:
    return json.dumps(anyio.run(_ask), indent=1, ensure_ascii=False) + "\n"


async def _ask() -> dict[str, Any]:
    with wakelog.open("memory:") as store:
        async with Client(build_server(store), mode="legacy") as client:
            answers: dict[str, Any] = {
                "capabilities": client.server_capabilities,
                "tools/list": await client.list_tools(),
                "prompts/list": await client.list_prompts(),
                "resources/list": await client.list_resources(),
                "resources/templates/list": await client.list_resource_templates(),
            }
        async with Client(build_server(store), mode=MODERN) as client:
            discovered = await client.session.send_discover(MODERN)
    discovered.pop("_meta")  # it has the version, which changes with each release
    said = {name: each.model_dump(mode="json", by_alias=True, exclude_unset=True) for name, each in answers.items()}
    return {**said, DISCOVER: discovered}
