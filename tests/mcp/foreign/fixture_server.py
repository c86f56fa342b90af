"""A server with the tools, resources and prompts that the conformance scenarios call, on the official SDK.

It is there to have something behind the proxy that asks back (sampling, elicitation), reports progress, logs, and sends
pictures and sounds. `python fixture_server.py PORT`.
"""

import base64
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp_types import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    SamplingMessage,
    TextContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOUND = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00").decode()

server: MCPServer[Any] = MCPServer("fixture", log_level="CRITICAL")


class Answer(BaseModel):
    response: str = Field(description="An answer.")


def embedded(uri: str, text: str) -> EmbeddedResource:
    return EmbeddedResource(type="resource", resource=TextResourceContents(uri=uri, mime_type="text/plain", text=text))


@server.tool()
def test_simple_text() -> str:
    """A text."""
    return "This is a simple text response for testing."


@server.tool()
def test_image_content() -> ImageContent:
    """A picture."""
    return ImageContent(type="image", data=PIXEL, mime_type="image/png")


@server.tool()
def test_audio_content() -> AudioContent:
    """A sound."""
    return AudioContent(type="audio", data=SOUND, mime_type="audio/wav")


@server.tool()
def test_embedded_resource() -> EmbeddedResource:
    """A resource inside."""
    return embedded("test://embedded-resource", "This is an embedded resource content.")


@server.tool()
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Several things."""
    return [
        TextContent(type="text", text="Multiple content types test:"),
        ImageContent(type="image", data=PIXEL, mime_type="image/png"),
        embedded("test://mixed-content-resource", '{"test": "data"}'),
    ]


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Says what it does."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
    return "logged"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Says how far it is."""
    for step in (0, 50, 100):
        await ctx.report_progress(step, 100)
    return "done"


@server.tool()
def test_error_handling() -> str:
    """Fails."""
    raise ValueError("This tool intentionally returns an error for testing")


@server.tool()
async def test_sampling(ctx: Context, prompt: str) -> str:
    """Asks the client's model."""
    asked = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    # On the stream of this call: the other one may not be open yet, and then nobody hears the question.
    got = await ctx.session.create_message(messages=[asked], max_tokens=100, related_request_id=ctx.request_id)
    return f"LLM response: {getattr(got.content, 'text', '')}"


@server.tool()
async def test_elicitation(ctx: Context, message: str) -> str:
    """Asks the client's user."""
    got = await ctx.elicit(message=message, schema=Answer)
    return f"User response: {got.action}"


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """A picture."""
    return base64.b64decode(PIXEL)


@server.resource("test://template/{id}/data", mime_type="application/json")
def template(id: str) -> str:
    """One of many."""
    return f'{{"id": "{id}", "templateTest": true, "data": "Data for ID: {id}"}}'


@server.prompt()
def test_simple_prompt() -> str:
    """A text."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A text with something in it."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
    """A resource inside."""
    return [
        UserMessage(content=embedded(resourceUri, "Embedded resource content for testing.")),
        UserMessage("Use it."),
    ]


@server.prompt()
def test_prompt_with_image() -> list[UserMessage]:
    """A picture."""
    return [
        UserMessage(content=ImageContent(type="image", data=PIXEL, mime_type="image/png")),
        UserMessage("Look at it."),
    ]


if __name__ == "__main__":
    # h11 takes off the space around a header's value (RFC 9110 §5.5), as the proxy must. httptools leaves it on, and
    # the server then refuses what it would have taken through the proxy.
    app = server.streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical", http="h11")
