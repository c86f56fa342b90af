"""The faults, and the check that must name each."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from tests.conformance.broken import Fault, Forward, WholeAnswer, WholeRequest

FAULTS: dict[str, Callable[[dict[str, str]], Fault]] = {}
"""The check that must fail → makes the fault, from the keys."""
ALSO: dict[str, set[str]] = {}
"""Other checks that may fail too, because they depend on the same promise."""


def names(check: str, *also: str) -> Callable[[Callable[[dict[str, str]], Fault]], Callable[[dict[str, str]], Fault]]:
    def enter(make: Callable[[dict[str, str]], Fault]) -> Callable[[dict[str, str]], Fault]:
        FAULTS[check], ALSO[check] = make, set(also)
        return make

    return enter


def _request(change: Callable[[WholeRequest], WholeRequest | None]) -> Callable[[dict[str, str]], Fault]:
    async def fault(request: WholeRequest, _: Forward) -> WholeRequest | None:
        return change(request)

    return lambda keys: fault


def _without(request: WholeRequest, name: str) -> WholeRequest:
    return request.with_json({k: v for k, v in request.json.items() if k != name})


# The expected head is ignored
names("append-expects-head", "one-writer-wins", "problems-have-groups")(
    _request(lambda a: _without(a, "expect") if a.is_append and b'"expect"' in a.body else None)
)
# An old lease is accepted
names("lease-fences")(_request(lambda a: _without(a, "guard") if a.is_append and b'"guard"' in a.body else None))


# A resumed tail forgets its position
def _forgets_place(request: WholeRequest) -> WholeRequest | None:
    if not request.path.startswith("/v1/sessions") or "last-event-id" not in request.headers:
        return None
    request.headers = {k: v for k, v in request.headers.items() if k != "last-event-id"}
    return request


names("tail-resumes")(_request(_forgets_place))


# Every state is the current one
def _only_now(request: WholeRequest) -> WholeRequest | None:
    if request.path.endswith("/state") and request.query.get("at", "").startswith("e") and request.query["at"] != "e9":
        request.query = {k: v for k, v in request.query.items() if k != "at"}
        return request
    return None


names("state-at-a-point", "state-is-folded", "rewind-appends")(_request(_only_now))


@names("repeat-is-stored-once", "repeat-comes-before-expect", "repeat-after-close", "one-repeat-is-stored",
       "lost-answer-can-be-repeated")  # fmt: skip
def _stores_twice(keys: dict[str, str]) -> Fault:
    seen: set[tuple[str, bytes]] = set()

    async def fault(request: WholeRequest, _: Forward) -> WholeRequest | None:
        if not request.is_append or b'"commit_id"' not in request.body:
            return None
        known = (request.path, request.body) in seen
        seen.add((request.path, request.body))
        return _without(_without(request, "commit_id"), "expect") if known else None

    return fault


@names("commit-id-is-not-reused")
def _answers_reused_id(keys: dict[str, str]) -> Fault:
    """Another commit with a known id is treated as a repetition."""
    first: dict[tuple[str, str], WholeAnswer] = {}

    async def fault(request: WholeRequest, forward: Forward) -> WholeAnswer | None:
        if not request.is_append or b'"commit_id"' not in request.body:
            return None
        known = (request.path, request.json["commit_id"])
        answer = await forward(request)
        if answer.status == 200:
            first.setdefault(known, answer)
        return first[known] if answer.status == 400 and known in first else answer

    return fault


@names("append-is-atomic")
def _stores_the_first_part(keys: dict[str, str]) -> Fault:
    async def fault(request: WholeRequest, forward: Forward) -> WholeAnswer | None:
        if not request.is_append:
            return None
        answer = await forward(request)
        try:
            several = request.json["events"][:-1]
        except (ValueError, TypeError, KeyError):
            return answer
        if answer.status == 409 and answer.json["kind"] == "turn-machine" and several:
            await forward(request.with_json({"events": several}))
        return answer

    return fault


@names("event-pages-are-complete", "pages-go-on-while-writing")
def _loses_one_between_pages(keys: dict[str, str]) -> Fault:
    async def fault(request: WholeRequest, forward: Forward) -> WholeAnswer | None:
        is_second_page = request.query.get("after", "0") != "0" and request.query.get("limit") in ("2", "3")
        if not request.path.endswith("/events") or not is_second_page:
            return None
        answer = await forward(request)
        page = answer.json
        return answer.with_json({**page, "events": page["events"][1:]})

    return fault


@names("etag-moves-with-the-head")
def _etag_of_the_session(keys: dict[str, str]) -> Fault:
    """The tag depends on the session only, not on its head."""

    async def fault(request: WholeRequest, forward: Forward) -> WholeAnswer | None:
        tag = f'"{request.path}"'
        if request.method != "GET" or not request.path.endswith(("/head", "/state", "/events")):
            return None
        if request.headers.get("if-none-match") == tag:
            return WholeAnswer(304, {"etag": tag}, b"")
        answer = await forward(request)
        return (
            WholeAnswer(answer.status, {**answer.headers, "etag": tag}, answer.body)
            if "etag" in answer.headers
            else answer
        )

    return fault


@names("other-key-sees-no-session")
def _leaks(keys: dict[str, str]) -> Fault:
    """Anybody who knows the id may read the events."""

    async def fault(request: WholeRequest, forward: Forward) -> WholeRequest | None:
        if (
            request.method == "GET"
            and request.path.startswith("/v1/sessions/s_")
            and keys["two"] in str(request.headers)
        ):
            request.headers = {**request.headers, "authorization": f"Bearer {keys['one']}"}
            return request
        return None

    return fault


def _answer(change: Callable[[WholeRequest, WholeAnswer], Any]) -> Callable[[dict[str, str]], Fault]:
    """Changes problems."""

    async def fault(request: WholeRequest, forward: Forward) -> WholeAnswer | None:
        if request.path.endswith("/tail"):
            return None
        answer = await forward(request)
        if answer.status < 400:
            return answer
        return answer.with_json(change(request, answer))

    return lambda keys: fault


names("no-such-session", "unknown-fields-are-refused", "other-key-sees-no-session")(
    _answer(lambda _, g: {**g.json, "kind": {"session-not-found": "not-found"}.get(g.json["kind"], g.json["kind"])})
)
names("append-names-legal-moves", "close-ends")(_answer(lambda _, g: {k: v for k, v in g.json.items() if k != "legal"}))


@names("verify-holds-anchor")
def _ignores_anchor(keys: dict[str, str]) -> Fault:
    async def fault(request: WholeRequest, forward: Forward) -> WholeAnswer | None:
        if request.method != "POST" or not request.path.endswith("/verify"):
            return None
        answer = await forward(request)
        return answer.with_json({**answer.json, "integrity": [], "completeness": [], "anchored": True})

    return fault


@names("bundle-proves-itself", "bundle-is-taken-whole")
def _rewrites_bundle(keys: dict[str, str]) -> Fault:
    async def fault(request: WholeRequest, forward: Forward) -> WholeAnswer | None:
        if not request.path.endswith("/bundle"):
            return None
        answer = await forward(request)
        return WholeAnswer(answer.status, answer.headers, answer.body.replace(b"user", b"USER"))

    return fault


@names("writers-lose-nothing")
def _loses_one_of_two(keys: dict[str, str]) -> Fault:
    """Of two concurrent appends without a commit id, the second is answered but not stored."""
    busy: dict[str, asyncio.Future[WholeAnswer]] = {}
    turn = itertools.count()

    async def fault(request: WholeRequest, forward: Forward) -> WholeAnswer | None:
        plain = request.is_append and b'"commit_id"' not in request.body and b'"expect"' not in request.body
        if not plain:
            return None
        if request.path in busy and next(turn) % 2:
            return await asyncio.shield(busy[request.path])
        future = busy[request.path] = asyncio.get_running_loop().create_future()
        try:
            answer = await forward(request)
            future.set_result(answer)
        finally:
            if busy.get(request.path) is future:
                del busy[request.path]
        return answer

    return fault


@names("keys-are-asked-for")
def _needs_no_key(keys: dict[str, str]) -> Fault:
    async def fault(request: WholeRequest, forward: Forward) -> WholeRequest | None:
        if request.method == "GET" and "authorization" not in request.headers:
            request.headers = {**request.headers, "authorization": f"Bearer {keys['one']}"}
            return request
        return None

    return fault


@names("unknown-fields-are-refused")
def _ignores_unknown_fields(keys: dict[str, str]) -> Fault:
    async def fault(request: WholeRequest, forward: Forward) -> WholeRequest | None:
        if request.method == "POST" and request.path == "/v1/sessions":
            return request.with_json({k: v for k, v in request.json.items() if k in ("name", "goal", "labels", "data")})
        return None

    return fault


@names("append-answers-with-head")
def _answers_before_it_is_stored(keys: dict[str, str]) -> Fault:
    """A read right after the answer still sees the old head, as if the commit were stored later."""
    heads: dict[str, bytes] = {}

    async def fault(request: WholeRequest, forward: Forward) -> WholeAnswer | None:
        if request.method == "GET" and request.path.endswith("/head"):
            answer = await forward(request)
            shown = heads.pop(request.path, answer.body)
            return WholeAnswer(answer.status, answer.headers, shown)
        if request.is_append and request.body.count(b'"message.added"') == 2 and b'"commit_id"' not in request.body:
            path = request.path.removesuffix("/events") + "/head"
            answer = await forward(request)
            if answer.status != 200:
                return answer
            heads[path] = answer.with_json({**answer.json, "seq": answer.json["seq"] - 2}).body
            return answer
        return None

    return fault
