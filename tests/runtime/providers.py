"""A provider on the loopback interface that speaks the streams of OpenAI and Anthropic as they are on the wire.

So their real clients can be driven. Each request is answered by the next stream in the list; `asked` keeps them all.
"""

import contextlib
import gzip
import json
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal

import msgspec

Ending = Literal["whole", "quiet", "broken"]
"""Said to be over; just over; or the connection lost in the middle."""


class Play(msgspec.Struct):
    events: list[dict[str, Any]]
    ending: Ending = "whole"
    is_named: bool = True
    """Whether each event has an `event:` line, as all but chat completions have."""
    answer: dict[str, Any] | None = None
    """An answer at once, instead of a stream."""
    status: int = 200
    held: threading.Event | None = None
    """Waits for this before it answers, or before the part of the stream at `held_at`."""
    held_at: int = 0
    is_gzipped: bool = False
    """Whether the answer is compressed, whatever the request allows."""


class Provider:
    def __init__(self) -> None:
        self.plays: list[Play] = []
        self.asked: list[dict[str, Any]] = []
        self.bodies: list[bytes] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""


@contextlib.contextmanager
def provider() -> Iterator[Provider]:
    told = Provider()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None:
            pass

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            told.bodies.append(body)
            told.paths.append(self.path)
            told.headers.append({name.lower(): value for name, value in self.headers.items()})
            with contextlib.suppress(ValueError):
                told.asked.append(json.loads(body))
            play = told.plays.pop(0)
            if play.held is not None and not play.held_at:
                play.held.wait(180)
            if play.answer is not None:
                self._at_once(play.status, json.dumps(play.answer).encode(), play.is_gzipped)
                return
            packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS) if play.is_gzipped else None
            self.send_response(200)
            if packer is not None:
                self.send_header("content-encoding", "gzip")
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                for number, event in enumerate(play.events):
                    if play.held is not None and number == play.held_at > 0:
                        play.held.wait(180)
                    name = f"event: {event['type']}\n" if play.is_named else ""
                    self._chunk(f"{name}data: {json.dumps(event)}\n\n", packer)
                if play.ending == "broken":
                    self.wfile.write(b"ff\r\nhalf")
                    self.close_connection = True
                    return
                if play.ending == "whole" and not play.is_named:
                    self._chunk("data: [DONE]\n\n", packer)
                self._chunk("")

        def _at_once(self, status: int, data: bytes, is_gzipped: bool) -> None:
            data = gzip.compress(data) if is_gzipped else data
            self.send_response(status)
            if is_gzipped:
                self.send_header("content-encoding", "gzip")
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            with contextlib.suppress(ConnectionError):
                self.wfile.write(data)

        def _chunk(self, text: str, packer: Any = None) -> None:
            data = text.encode()
            if packer is not None:
                data = packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH)
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
            self.wfile.flush()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield told
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def chat(*, ending: Ending = "whole", upto: int = 99) -> Play:
    """Says "Hello there", and asks for a look north."""
    frame = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1-2025-04-14"}

    def said(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    call = {"index": 0, "id": "t1", "type": "function", "function": {"name": "look", "arguments": ""}}
    events = [
        said({"role": "assistant", "content": ""}),
        said({"content": "Hello"}),
        said({"content": " there"}),
        said({"tool_calls": [call]}),
        said({"tool_calls": [{"index": 0, "function": {"arguments": '{"where":'}}]}),
        said({"tool_calls": [{"index": 0, "function": {"arguments": '"north"}'}}]}),
        said({}, "tool_calls"),
    ]
    if upto >= len(events):
        told = {
            "prompt_tokens": 1000,
            "completion_tokens": 100,
            "total_tokens": 1100,
            "prompt_tokens_details": {"cached_tokens": 400},
            "completion_tokens_details": {"reasoning_tokens": 30},
        }
        events.append({**frame, "choices": [], "usage": told})
    return Play(events[:upto], ending, is_named=False)


def messages(*, ending: Ending = "whole", upto: int = 99) -> Play:
    """The same in Anthropic's words."""
    start: dict[str, Any] = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 600,
            "cache_read_input_tokens": 400,
            "cache_creation_input_tokens": 0,
            "output_tokens": 1,
        },
    }
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {}}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " there"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": call},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"where":'}},
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '"north"}'}},
        {"type": "content_block_stop", "index": 1},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "tool_use", "stop_sequence": None},
            "usage": {"output_tokens": 100},
        },
        {"type": "message_stop"},
    ]
    return Play(events[:upto], ending)


def responses(*, ending: Ending = "whole", upto: int = 99) -> Play:
    """The same in the words of OpenAI's responses."""
    text = {"type": "output_text", "text": "Hello there", "annotations": []}
    said = {"id": "o1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    call = {
        "id": "o2",
        "type": "function_call",
        "call_id": "t1",
        "name": "look",
        "arguments": '{"where":"north"}',
        "status": "completed",
    }
    begun: dict[str, Any] = {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-4.1-2025-04-14",
        "status": "in_progress",
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    usage = {
        "input_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 400, "cache_write_tokens": 0},
        "output_tokens": 100,
        "output_tokens_details": {"reasoning_tokens": 30},
        "total_tokens": 1100,
    }
    whole = {**begun, "status": "completed", "output": [said, call], "usage": usage}
    at = {"item_id": "o1", "output_index": 0, "content_index": 0}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.output_item.added", "output_index": 0, "item": {**said, "content": []}},
        {"type": "response.content_part.added", **at, "part": {**text, "text": ""}},
        {"type": "response.output_text.delta", **at, "delta": "Hello", "logprobs": []},
        {"type": "response.output_text.delta", **at, "delta": " there", "logprobs": []},
        {"type": "response.output_text.done", **at, "text": "Hello there", "logprobs": []},
        {"type": "response.content_part.done", **at, "part": text},
        {"type": "response.output_item.done", "output_index": 0, "item": said},
        {"type": "response.output_item.added", "output_index": 1, "item": {**call, "arguments": ""}},
        {
            "type": "response.function_call_arguments.delta",
            "item_id": "o2",
            "output_index": 1,
            "delta": call["arguments"],
        },
        {
            "type": "response.function_call_arguments.done",
            "item_id": "o2",
            "output_index": 1,
            "name": "look",
            "arguments": call["arguments"],
        },
        {"type": "response.output_item.done", "output_index": 1, "item": call},
        {"type": "response.completed", "response": whole},
    ]
    return Play([{**event, "sequence_number": n} for n, event in enumerate(events)][:upto], ending)
