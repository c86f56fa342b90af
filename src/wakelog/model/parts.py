"""Reads the content of a message, in any provider's format, into a few kinds of parts.

People record what their provider's client returns: a text, a list of content blocks, or a whole answer. All of these
are converted here to the same parts, from which every provider's format can be made. Unknown content becomes text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from wakelog.errors import InvalidInputError
from wakelog.model.json_fields import as_dict, dicts_in, text_in
from wakelog.model.payloads import is_erased
from wakelog.model.values import Value, check_value

_IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_BASE64 = r"[A-Za-z0-9+/]+={0,2}"
_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
_BLOCKS = frozenset(
    {
        *_THOUGHTS,
        *("text", "input_text", "output_text", "refusal"),
        *("image", "image_url", "input_image", "document", "resource"),
        *("tool_use", "tool_result", "function_call", "function_call_output"),
    }
)
CHAT_FIELDS = ("tool_calls", "function_call", "refusal", "audio")
"""Fields of a chat completion's message that say something beside its `content`."""
_DATA_URL = r"(?s)data:(?P<media>[\w/+.-]+);base64,(?P<data>.+)"


class Text(msgspec.Struct, frozen=True, tag="text"):
    text: str


class Image(msgspec.Struct, frozen=True, tag="image"):
    """A picture, embedded (`media`, `data` in base64) or linked (`url`)."""

    media: str = ""
    data: str = ""
    url: str = ""


class Thinking(msgspec.Struct, frozen=True, tag="thinking"):
    """A provider's own block, which must be sent back unchanged."""

    block: dict[str, Any]


class Asked(msgspec.Struct, frozen=True, tag="asked"):
    """A call that a model asked for in its answer."""

    id: str
    name: str
    input: Value


class Answered(msgspec.Struct, frozen=True, tag="answered"):
    """The result of a call, in a message."""

    id: str
    text: str
    is_error: bool = False


Part = Text | Image | Thinking | Asked | Answered


def text_of(value: Value) -> str:
    """Returns a value as text: strings unchanged, the rest as JSON, and a remark for erased content."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return f"({len(value):,} bytes)"
    if is_erased(value):
        return f"(erased, e{value['$erased']})"
    return msgspec.json.encode(value, enc_hook=_as_text).decode()


def _as_text(value: object) -> str:
    return f"({len(value):,} bytes)" if isinstance(value, bytes) else str(value)


def parts_of(content: Value) -> tuple[Part, ...]:
    """Returns the parts of a message's content or of a model's whole answer, without empty texts."""
    return tuple(filter(_is_filled, _parts(content)))


def _is_filled(part: Part) -> bool:
    return not isinstance(part, Text) or bool(part.text.strip())


def _parts(content: Value) -> Iterator[Part]:
    if isinstance(content, list) and content and all(_is_block(b) for b in content):
        for block in content:
            yield from _block(block)
    elif isinstance(content, dict) and not content.keys() & {"$erased", "gone"}:
        yield from _answer(content)
    elif content is not None:
        yield Text(text_of(content))


def is_answer(value: Value) -> bool:
    """Whether a value is a model's whole answer, in the format of a big provider's client."""
    if not isinstance(value, dict):
        return False
    for name, inner in (("choices", "message"), ("candidates", "content")):
        listed = value.get(name)
        if isinstance(listed, list) and listed and isinstance(listed[0], dict):
            return isinstance(listed[0].get(inner), dict)
    if value.get("object") == "response":
        return isinstance(value.get("output"), list)
    return value.get("role") == "assistant" and value.keys() >= {"content", "type"}


def content_text(value: Value) -> str:
    """Returns a model's whole answer, or a list of content blocks, as text; empty for any other value."""
    is_blocks = isinstance(value, list) and bool(value) and all(_is_block(b) and b["type"] in _BLOCKS for b in value)
    return flat(parts_of(value)) if is_blocks or is_answer(value) else ""


def thought_text(value: Value) -> str:
    """Returns what a model thought, for an answer that holds thoughts only; empty for any other value."""
    blocks = value.get("content") if isinstance(value, dict) and is_answer(value) else value
    if not isinstance(blocks, list) or not blocks or not all(_is_block(b) and b["type"] in _THOUGHTS for b in blocks):
        return ""
    texts = [text_in(b, "thinking") or " ".join(text_in(s, "text") for s in dicts_in(b.get("summary"))) for b in blocks]
    return f"(thinking) {' '.join(filter(None, texts))}".strip()


def reply_of(answer: Value) -> Value:
    """Returns a model's whole answer as the content of a message: its text, or its blocks if it asks for calls. Any
    other value is returned unchanged."""
    if not is_answer(answer):
        return answer
    parts = [p for p in parts_of(answer) if isinstance(p, Text | Asked)]
    if not any(isinstance(p, Asked) for p in parts):
        return flat(parts)
    return [
        {"type": "text", "text": p.text}
        if isinstance(p, Text)
        else {"type": "tool_use", "id": p.id, "name": p.name, "input": p.input}
        for p in parts
    ]


def _is_block(value: Value) -> bool:
    return isinstance(value, dict) and isinstance(value.get("type"), str)


def _answer(answer: dict[str, Any]) -> Iterator[Part]:
    """Reads a whole message or answer in a big provider's format. Any other object becomes text."""
    choices, output, candidates = answer.get("choices"), answer.get("output"), answer.get("candidates")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        yield from _answer(choices[0].get("message") or {})
    elif isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        yield from _google(candidates[0].get("content"))
    elif isinstance(output, list) and all(_is_block(b) for b in output):
        yield from _parts(output)
    elif answer.get("role") == "tool" and isinstance(answer.get("tool_call_id"), str):
        yield Answered(answer["tool_call_id"], _flat(answer.get("content")))
    elif "role" in answer and answer.keys() & {"content", *CHAT_FIELDS}:
        yield from _parts(answer.get("content"))
        yield from _beside_content(answer)
    elif _is_block(answer):
        yield from _block(answer)
    elif isinstance(answer.get("parts"), list) and answer.keys() <= {"role", "parts"}:
        yield from _google(answer)
    elif answer:
        yield Text(text_of(answer))


def _beside_content(message: dict[str, Any]) -> Iterator[Part]:
    """Reads what a chat completion says in fields beside `content`: a refusal, speech, calls."""
    if isinstance(message.get("refusal"), str):
        yield Text(message["refusal"])
    if isinstance(spoken := message.get("audio"), dict):
        yield Text(text_in(spoken, "transcript") or f"(speech: {text_in(spoken, 'id') or 'without an id'})")
    for call in dicts_in(message.get("tool_calls")):
        if isinstance(function := call.get("function"), dict):
            yield Asked(text_in(call, "id"), text_in(function, "name"), _arguments(function.get("arguments")))
        elif isinstance(custom := call.get("custom"), dict):
            yield Asked(text_in(call, "id"), text_in(custom, "name"), custom.get("input"))
    if isinstance(old := message.get("function_call"), dict):  # the form before `tool_calls`, which has no id
        yield Asked("", text_in(old, "name"), _arguments(old.get("arguments")))


def _google(content: Value) -> Iterator[Part]:
    parts = content.get("parts") if isinstance(content, dict) else None
    for part in parts if isinstance(parts, list) else ():
        if not isinstance(part, dict) or part.get("thought"):
            continue
        call = part.get("functionCall") or part.get("function_call")
        result = part.get("functionResponse") or part.get("function_response")
        if isinstance(call, dict):
            yield Asked(text_in(call, "id"), text_in(call, "name"), call.get("args"))
        elif isinstance(result, dict):
            yield Answered(text_in(result, "id"), text_of(result.get("response")))
        elif isinstance(part.get("text"), str):
            yield Text(part["text"])
        elif isinstance(held := part.get("inlineData") or part.get("inline_data"), dict):
            media = held.get("mimeType") or held.get("mime_type")
            yield _image({"source": {"media_type": media, "data": held.get("data")}})


def _block(block: dict[str, Any]) -> Iterator[Part]:
    match block["type"]:
        case "text" | "input_text" | "output_text" if isinstance(block.get("text"), str):
            yield Text(block["text"])
        case "message" if isinstance(block.get("content"), list | str):
            yield from _parts(block["content"])
        case "refusal" if isinstance(block.get("refusal"), str):
            yield Text(block["refusal"])
        case "image" | "image_url" | "input_image":
            yield _image(block)
        case "document" if isinstance(block.get("source"), dict):
            yield Text(_document(block, block["source"]))
        case "resource" if isinstance(block.get("resource"), dict):
            resource = block["resource"]
            yield Text(text_in(resource, "text") or f"(a resource: {text_in(resource, 'uri') or 'without an address'})")
        case "thinking" if isinstance(block.get("thinking"), str) and isinstance(block.get("signature"), str):
            yield Thinking({name: block[name] for name in ("type", "thinking", "signature")})
        case "redacted_thinking" if isinstance(block.get("data"), str):
            yield Thinking({name: block[name] for name in ("type", "data")})
        case "tool_use":
            yield Asked(text_in(block, "id"), text_in(block, "name"), block.get("input"))
        case "function_call":
            yield Asked(text_in(block, "call_id"), text_in(block, "name"), _arguments(block.get("arguments")))
        case "custom_tool_call":
            yield Asked(text_in(block, "call_id"), text_in(block, "name"), block.get("input"))
        case "tool_result":
            is_error = block.get("is_error") is True
            yield Answered(text_in(block, "tool_use_id"), _flat(block.get("content")), is_error)
        case "function_call_output" | "custom_tool_call_output":
            yield Answered(text_in(block, "call_id"), _flat(block.get("output")))
        case "server_tool_use" | "mcp_tool_use":
            yield Text(f"({_hosted_call(block)})")
        case str(kind) if kind.endswith("_tool_result"):
            yield Text(_hosted_result(block))
        case "reasoning" | "thinking":
            return  # only the provider itself can read these
        case "approval_request" | "approval_response":
            return  # not words: adapters put these beside a call that a person is asked about
        case _:
            yield Text(text_of(block))


def _hosted_call(block: dict[str, Any]) -> str:
    """Describes a call that the provider itself made while it answered."""
    data, name = as_dict(block.get("input")), text_in(block, "name") or "a tool"
    about = next((text_in(data, key) for key in ("query", "url", "code", "command") if text_in(data, key)), "")
    return f"{name.replace('_', ' ')}: {about or text_of(data)}"


def _hosted_result(block: dict[str, Any]) -> str:
    """Describes its result: pages by title and URL. Only the provider can decrypt their content."""
    content = block.get("content")
    lines = [" ".join(filter(None, (text_in(p, "title"), text_in(p, "url")))) for p in dicts_in(content)]
    if any(lines):
        return "\n".join(f"- {line}" for line in lines if line)
    failed = text_in(as_dict(content), "error_code")
    return f"(it failed: {failed})" if failed else text_of(content)


def _image(block: dict[str, Any]) -> Part:
    given = block.get("source")
    source: dict[str, Any] = given if isinstance(given, dict) else {}
    place = block.get("image_url") or source.get("url") or ""
    url = place.get("url", "") if isinstance(place, dict) else place
    media, data = source.get("media_type"), source.get("data")
    if isinstance(url, str) and (match := re.fullmatch(_DATA_URL, url)):
        media, data = match["media"], match["data"]
    if media in _IMAGES and isinstance(data, str) and re.fullmatch(_BASE64, data):
        return Image(media=str(media), data=data)
    if isinstance(url, str) and re.fullmatch(r"https?://\S+", url):
        return Image(url=url)
    return Text("(an image)" if source.get("type") == "sha256" else "(an image that cannot be shown)")


def _document(block: dict[str, Any], source: dict[str, Any]) -> str:
    """Returns a document's text if it is one. Else names it: the bytes of a PDF are no words."""
    if source.get("type") == "text" and isinstance(source.get("data"), str):
        return str(source["data"])
    if isinstance(source.get("content"), str | list):
        return _flat(source["content"])
    about = text_in(block, "title") or text_in(source, "url") or text_in(source, "media_type")
    return f"(a document: {about})" if about else "(a document)"


def _arguments(given: Value) -> Value:
    """Decodes arguments that a provider sends as JSON text. Invalid JSON stays text."""
    if not isinstance(given, str):
        return given
    try:
        return check_value(msgspec.json.decode(given), reserved=True) if given.strip() else None
    except (msgspec.DecodeError, InvalidInputError):
        return given


def _flat(content: Value) -> str:
    """Returns a result as one text."""
    return flat(parts_of(content))


def flat(parts: Iterable[Part]) -> str:
    """Returns parts as one text; parts that are not text are named."""
    lines = []
    for part in parts:
        if isinstance(part, Text):
            lines.append(part.text)
        elif isinstance(part, Image):
            lines.append("(an image)")
        elif isinstance(part, Asked):
            given = "" if part.input is None else f": {text_of(part.input)}"
            lines.append(f"(asks for {part.name}{given})")
        elif isinstance(part, Answered):
            lines.append(part.text)
    return "\n".join(lines)
