"""An agent that knows nothing of wakelog, and one line that records it.

    python examples/instrumented.py            # the one line is here: wakelog.instrument("openai")
    wakelog record -- python examples/instrumented.py --plain     # not even that

Then look: `wakelog log`, `wakelog show @1`, `wakelog cost`. It needs `pip install openai`. With OPENAI_API_KEY it asks
the real model; without, a stand-in on this machine answers.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import openai

import wakelog

MODEL = "gpt-4.1-mini"
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "The weather in a city now.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }
]


def get_weather(city: str) -> str:
    return f"12 degrees and rain in {city}"


def ask(client: openai.OpenAI, question: str) -> str:
    """The usual loop: call the model, run the tools it asks for, until it answers."""
    messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    while True:
        message = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
        if not message.tool_calls:
            return message.content or ""
        messages.append(message)
        for call in message.tool_calls:
            assert call.type == "function"
            result = get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def main() -> None:
    if "--plain" not in sys.argv:
        wakelog.instrument("openai")
    with _base_url() as url, openai.OpenAI(api_key=os.environ.get("OPENAI_API_KEY", "none"), base_url=url) as client:
        print(ask(client, "Do I need an umbrella in Bern?"))


# The stand-in


@contextlib.contextmanager
def _base_url() -> Iterator[str | None]:
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        yield None  # the client finds it itself
        return
    with stand_in() as url:
        yield url


@contextlib.contextmanager
def stand_in() -> Iterator[str]:
    """A model that looks at the weather before it answers."""
    server = HTTPServer(("127.0.0.1", 0), _StandIn)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _StandIn(BaseHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        return

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if any(message["role"] == "tool" for message in request["messages"]):
            message: dict[str, Any] = {"role": "assistant", "content": "Yes, it rains."}
        else:
            call = {"name": "get_weather", "arguments": json.dumps({"city": "Bern"})}
            message = {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": call}]}
        reason = "tool_calls" if "tool_calls" in message else "stop"
        answer = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": request["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": reason}],
            "usage": {"prompt_tokens": 80, "completion_tokens": 12, "total_tokens": 92},
        }
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


if __name__ == "__main__":
    main()
