"""An error that leaves the effect unknown makes the call uncertain; it is not sent again unless that is safe."""

import asyncio
import concurrent.futures
import errno
import http.client
import socket
import ssl
import subprocess
import urllib.error
from collections.abc import Callable
from email.message import Message
from typing import Any

import pytest

import wakelog
from tests.runtime.lives import Desk, stopped
from wakelog.runtime.outcome import leaves_effect_unknown
from wakelog.session import Session


def _class(name: str, *bases: type[BaseException], module: str = "client") -> type[BaseException]:
    return type(name, bases or (Exception,), {"__module__": module})


HTTP_ERROR = _class("HTTPError", module="httpx")
TRANSPORT_ERROR = _class("TransportError", _class("RequestError", HTTP_ERROR))
READ_TIMEOUT: Any = _class("ReadTimeout", _class("TimeoutException", TRANSPORT_ERROR))


def _raised(error: BaseException, cause: BaseException | None = None, context: BaseException | None = None) -> Any:
    error.__context__ = context
    if cause is not None:
        error.__cause__ = cause
    return error


OPEN = [
    TimeoutError("x"),
    ConnectionResetError("x"),
    BrokenPipeError("x"),
    OSError(errno.EHOSTUNREACH, "x"),
    socket.gaierror("x"),
    ssl.SSLError("x"),
    subprocess.TimeoutExpired("x", 1),
    asyncio.CancelledError(),
    concurrent.futures.CancelledError(),
    http.client.IncompleteRead(b""),
    http.client.RemoteDisconnected("x"),
    urllib.error.URLError("x"),
    READ_TIMEOUT("x"),
    _class("RemoteProtocolError", _class("ProtocolError", TRANSPORT_ERROR))("x"),
    _class("ConnectionError", _class("RequestException", OSError), module="requests.exceptions")("x"),
    _class("APITimeoutError", _class("APIConnectionError", _class("APIError")), module="openai")("x"),
    ExceptionGroup("x", [ValueError("a"), TimeoutError("b")]),
    _raised(RuntimeError("wrapped"), cause=ConnectionError("x")),
    _raised(KeyError("while handling"), context=TimeoutError("x")),
    wakelog.UncertainError("x"),
]
KNOWN = [
    ValueError("x"),
    FileNotFoundError("x"),
    PermissionError("x"),
    urllib.error.HTTPError("http://example.com", 400, "no", Message(), None),
    _class("HTTPStatusError", HTTP_ERROR)("x"),
    _class("BadRequestError", _class("APIStatusError", _class("APIError")), module="openai")("x"),
    wakelog.NotSentError("x"),
    _raised(wakelog.NotSentError("refused at the door"), cause=ConnectionError("x")),
    ExceptionGroup("x", [ValueError("a")]),
]


@pytest.mark.parametrize("error", OPEN, ids=repr)
def test_errors_without_an_answer_leave_the_effect_open(error: BaseException) -> None:
    assert leaves_effect_unknown(error)


@pytest.mark.parametrize("error", KNOWN, ids=repr)
def test_errors_that_are_an_answer_do_not(error: BaseException) -> None:
    assert not leaves_effect_unknown(error)


def counting(session: Session[Any], error: Callable[[], BaseException], **policy: Any) -> tuple[Any, list[int]]:
    """A tool that raises, and how often it ran."""
    ran: list[int] = []

    @session.tool(backoff_s=0.0, **policy)
    def send(n: int) -> str:
        ran.append(n)
        raise error()

    return send, ran


@pytest.mark.parametrize("error", [TimeoutError, ConnectionError, ConnectionResetError, READ_TIMEOUT])
def test_an_effect_whose_answer_was_lost_is_uncertain_and_not_sent_again(
    desk: Desk, error: Callable[[str], BaseException]
) -> None:
    session = desk.operator
    _, ran = counting(session, lambda: error("lost"), retry=3, retry_on=(Exception,))
    with session.turn("go"):
        outcome = session.call("send", {"n": 1})
        assert outcome.status == "uncertain"
        assert outcome.error is not None
        assert (outcome.error.type, outcome.error.retryable) == (error.__name__, False)
        with stopped("uncertain-call"):
            session.call("send", {"n": 1})
    assert ran == [1]
    assert desk.statuses() == ["uncertain"]


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        ({"effect": "read"}, "failed"),
        ({"effect": "write", "uncertain": "retry"}, "failed"),
        ({"key": lambda n: f"order-{n}"}, "uncertain"),
    ],
)
def test_a_call_that_is_safe_to_repeat_or_has_a_key_is_sent_again(
    desk: Desk, policy: dict[str, Any], status: str
) -> None:
    session = desk.operator
    _, ran = counting(session, lambda: ConnectionError("lost"), retry=3, **policy)
    assert session.call("send", {"n": 1}).status == status
    assert ran == [1, 1, 1, 1]


def test_a_tool_that_knows_that_nothing_was_sent_says_so_and_is_sent_again(desk: Desk) -> None:
    session = desk.operator
    _, ran = counting(session, lambda: wakelog.NotSentError("no route"), retry=2, retry_on=(KeyError,))
    outcome = session.call("send", {"n": 1})
    assert outcome.status == "failed"
    assert ran == [1, 1, 1]
    assert desk.statuses() == []


def test_an_effect_that_counts_as_failed_when_unknown_is_failed(desk: Desk) -> None:
    session = desk.operator
    _, ran = counting(session, lambda: TimeoutError("lost"), retry=3, uncertain="fail")
    assert session.call("send", {"n": 1}).status == "failed"
    assert ran == [1]


def test_what_the_caller_was_handling_is_not_the_tools_error(desk: Desk) -> None:
    session = desk.operator
    counting(session, lambda: ValueError("wrong"))
    try:
        raise TimeoutError("of the caller")
    except TimeoutError:
        assert session.call("send", {"n": 1}).status == "failed"


def test_a_lost_answer_that_nobody_handles_stops_the_turn_and_the_same_script_goes_on_with_it(desk: Desk) -> None:
    """Recorded as failed, the turn would begin anew, and what it had done before would be done twice."""
    is_down = True

    def script() -> str:
        session = desk.operator

        @session.tool
        def act(n: int) -> str:
            call = wakelog.current_call()
            assert call is not None
            answer = desk.world.do("act", n, call.key)
            if n == 2 and is_down:
                raise ConnectionResetError("lost")
            return answer

        with session.turn("go"):
            return f"{act(1)}, {act(2)}"

    with pytest.raises(ConnectionResetError):
        script()
    assert desk.operator.state().turn.status == "interrupted"
    with stopped("uncertain-call"):
        script()
    desk.world.reconcile(desk.operator)
    assert script() == "act(1) no 1, act(2) no 1"
    assert sorted(n for _, n, _ in desk.world.done) == [1, 2]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_awaited_tool_that_lost_its_answer_is_uncertain(session: Session[Any]) -> None:
    @session.tool(retry=3, backoff_s=0.0)
    async def send() -> None:
        raise READ_TIMEOUT("lost")

    outcome = await session.aio.call("send")
    assert outcome.status == "uncertain"
