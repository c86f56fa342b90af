"""Agents to replay. Tools with effects add themselves to `ran`; `WORLD` is what they read."""

import socket
from typing import Any

import wakelog
from wakelog.session import Session

ran: list[str] = []
WORLD: dict[str, Any] = {"now": 100}


@wakelog.tool(effect="read")
def search(q: str, limit: int = 3) -> list[str]:
    ran.append(f"search {q}")
    return [f"{q} {n}" for n in range(limit)]


@wakelog.tool
def send(to: str, body: str) -> str:
    """Has an effect, and uses the network."""
    ran.append(f"send {to}")
    socket.getaddrinfo("localhost", 80)
    return f"sent to {to}"


@wakelog.tool(effect="pure")
def clock() -> int:
    WORLD["now"] += 1
    return int(WORLD["now"])


class Broken(Exception):
    """An exception that the agent defines."""


@wakelog.tool(effect="read")
def flaky(key: str) -> str:
    ran.append(f"flaky {key}")
    if key == "own":
        raise Broken("out of order")
    if key == "lookup":
        raise KeyError("no such key")
    raise ConnectionError("reset by peer")


def model(messages: list[Any], model: str = "opus", temperature: float = 0) -> dict[str, Any]:
    ran.append("model")
    return {"text": f"{len(messages)} messages, {WORLD['now']}", "usage": {"input_tokens": 7, "output_tokens": 3}}


def run(session: Session[Any], text: str) -> str:
    """Looks something up, asks a model, tells somebody."""
    with session.turn(user=text) as turn:
        found = search(text)
        answer = turn.model(model, [text, *found])
        at = clock()
        session.message("assistant", answer["text"])
        session.fact("found", len(found))
        return send("ada", f"{answer['text']} at {at}")
