"""The faults, and the check that must name each."""

import asyncio
import itertools
from collections.abc import Callable
from typing import Any

from tests.conformance.broken import Asked, Fault, Given, Pass

FAULTS: dict[str, Callable[[dict[str, str]], Fault]] = {}
"""The check that names a fault → makes the fault, given the keys."""
ALSO: dict[str, set[str]] = {}
"""Other checks that may notice it too, because they rest on the same promise."""


def names(check: str, *also: str) -> Callable[[Callable[[dict[str, str]], Fault]], Callable[[dict[str, str]], Fault]]:
    def enter(make: Callable[[dict[str, str]], Fault]) -> Callable[[dict[str, str]], Fault]:
        FAULTS[check], ALSO[check] = make, set(also)
        return make

    return enter


def _request(change: Callable[[Asked], Asked | None]) -> Callable[[dict[str, str]], Fault]:
    async def fault(asked: Asked, _: Pass) -> Asked | None:
        return change(asked)

    return lambda keys: fault


def _without(asked: Asked, name: str) -> Asked:
    return asked.with_json({k: v for k, v in asked.json.items() if k != name})


# The head is not looked at
names("append-expects-head", "one-writer-wins", "problems-have-groups")(
    _request(lambda a: _without(a, "expect") if a.is_append and b'"expect"' in a.body else None)
)
# An old lease is let in
names("lease-fences")(_request(lambda a: _without(a, "guard") if a.is_append and b'"guard"' in a.body else None))


# A broken tail begins anew
def _forgets_place(asked: Asked) -> Asked | None:
    if not asked.path.startswith("/v1/sessions") or "last-event-id" not in asked.headers:
        return None
    asked.headers = {k: v for k, v in asked.headers.items() if k != "last-event-id"}
    return asked


names("tail-resumes")(_request(_forgets_place))


# Every state is the newest
def _only_now(asked: Asked) -> Asked | None:
    if asked.path.endswith("/state") and asked.query.get("at", "").startswith("e") and asked.query["at"] != "e9":
        asked.query = {k: v for k, v in asked.query.items() if k != "at"}
        return asked
    return None


names("state-at-a-point", "state-is-folded", "rewind-appends")(_request(_only_now))


@names("repeat-is-stored-once", "repeat-comes-before-expect", "repeat-after-close", "one-repeat-is-stored",
       "lost-answer-can-be-repeated")  # fmt: skip
def _stores_twice(keys: dict[str, str]) -> Fault:
    seen: set[tuple[str, bytes]] = set()

    async def fault(asked: Asked, _: Pass) -> Asked | None:
        if not asked.is_append or b'"commit_id"' not in asked.body:
            return None
        known = (asked.path, asked.body) in seen
        seen.add((asked.path, asked.body))
        return _without(_without(asked, "commit_id"), "expect") if known else None

    return fault


@names("commit-id-is-not-reused")
def _answers_reused_id(keys: dict[str, str]) -> Fault:
    """Another commit under a known id is taken for a repetition."""
    first: dict[tuple[str, str], Given] = {}

    async def fault(asked: Asked, go_on: Pass) -> Given | None:
        if not asked.is_append or b'"commit_id"' not in asked.body:
            return None
        known = (asked.path, asked.json["commit_id"])
        given = await go_on(asked)
        if given.status == 200:
            first.setdefault(known, given)
        return first[known] if given.status == 400 and known in first else given

    return fault


@names("append-is-atomic")
def _stores_the_first_part(keys: dict[str, str]) -> Fault:
    async def fault(asked: Asked, go_on: Pass) -> Given | None:
        if not asked.is_append:
            return None
        given = await go_on(asked)
        try:
            several = asked.json["events"][:-1]
        except (ValueError, TypeError, KeyError):
            return given
        if given.status == 409 and given.json["kind"] == "turn-machine" and several:
            await go_on(asked.with_json({"events": several}))
        return given

    return fault


@names("event-pages-are-complete", "pages-go-on-while-writing")
def _loses_one_between_pages(keys: dict[str, str]) -> Fault:
    async def fault(asked: Asked, go_on: Pass) -> Given | None:
        is_second_page = asked.query.get("after", "0") != "0" and asked.query.get("limit") in ("2", "3")
        if not asked.path.endswith("/events") or not is_second_page:
            return None
        given = await go_on(asked)
        page = given.json
        return given.with_json({**page, "events": page["events"][1:]})

    return fault


@names("etag-moves-with-the-head")
def _etag_of_the_session(keys: dict[str, str]) -> Fault:
    """The tag names the session, not what it is at."""

    async def fault(asked: Asked, go_on: Pass) -> Given | None:
        tag = f'"{asked.path}"'
        if asked.method != "GET" or not asked.path.endswith(("/head", "/state", "/events")):
            return None
        if asked.headers.get("if-none-match") == tag:
            return Given(304, {"etag": tag}, b"")
        given = await go_on(asked)
        return Given(given.status, {**given.headers, "etag": tag}, given.body) if "etag" in given.headers else given

    return fault


@names("other-key-sees-no-session")
def _leaks(keys: dict[str, str]) -> Fault:
    """Who knows the id may read the events."""

    async def fault(asked: Asked, go_on: Pass) -> Asked | None:
        if asked.method == "GET" and asked.path.startswith("/v1/sessions/s_") and keys["two"] in str(asked.headers):
            asked.headers = {**asked.headers, "authorization": f"Bearer {keys['one']}"}
            return asked
        return None

    return fault


def _answer(change: Callable[[Asked, Given], Any]) -> Callable[[dict[str, str]], Fault]:
    """Changes problems."""

    async def fault(asked: Asked, go_on: Pass) -> Given | None:
        if asked.path.endswith("/tail"):
            return None
        given = await go_on(asked)
        if given.status < 400:
            return given
        return given.with_json(change(asked, given))

    return lambda keys: fault


names("no-such-session", "unknown-fields-are-refused", "other-key-sees-no-session")(
    _answer(lambda _, g: {**g.json, "kind": {"session-not-found": "not-found"}.get(g.json["kind"], g.json["kind"])})
)
names("append-names-legal-moves", "close-ends")(_answer(lambda _, g: {k: v for k, v in g.json.items() if k != "legal"}))


@names("verify-holds-anchor")
def _ignores_anchor(keys: dict[str, str]) -> Fault:
    async def fault(asked: Asked, go_on: Pass) -> Given | None:
        if asked.method != "POST" or not asked.path.endswith("/verify"):
            return None
        given = await go_on(asked)
        return given.with_json({**given.json, "integrity": [], "completeness": [], "anchored": True})

    return fault


@names("bundle-proves-itself", "bundle-is-taken-whole")
def _rewrites_bundle(keys: dict[str, str]) -> Fault:
    async def fault(asked: Asked, go_on: Pass) -> Given | None:
        if not asked.path.endswith("/bundle"):
            return None
        given = await go_on(asked)
        return Given(given.status, given.headers, given.body.replace(b"user", b"USER"))

    return fault


@names("writers-lose-nothing")
def _loses_one_of_two(keys: dict[str, str]) -> Fault:
    """Of appends at the same time without a commit id, the second is answered and not stored."""
    busy: dict[str, asyncio.Future[Given]] = {}
    turn = itertools.count()

    async def fault(asked: Asked, go_on: Pass) -> Given | None:
        plain = asked.is_append and b'"commit_id"' not in asked.body and b'"expect"' not in asked.body
        if not plain:
            return None
        if asked.path in busy and next(turn) % 2:
            return await asyncio.shield(busy[asked.path])
        future = busy[asked.path] = asyncio.get_running_loop().create_future()
        try:
            given = await go_on(asked)
            future.set_result(given)
        finally:
            if busy.get(asked.path) is future:
                del busy[asked.path]
        return given

    return fault


@names("keys-are-asked-for")
def _needs_no_key(keys: dict[str, str]) -> Fault:
    async def fault(asked: Asked, go_on: Pass) -> Asked | None:
        if asked.method == "GET" and "authorization" not in asked.headers:
            asked.headers = {**asked.headers, "authorization": f"Bearer {keys['one']}"}
            return asked
        return None

    return fault


@names("unknown-fields-are-refused")
def _ignores_unknown_fields(keys: dict[str, str]) -> Fault:
    async def fault(asked: Asked, go_on: Pass) -> Asked | None:
        if asked.method == "POST" and asked.path == "/v1/sessions":
            return asked.with_json({k: v for k, v in asked.json.items() if k in ("name", "goal", "labels", "data")})
        return None

    return fault


@names("append-answers-with-head")
def _answers_before_it_is_stored(keys: dict[str, str]) -> Fault:
    """The head that is told is not yet that of what was sent: the commit is stored a little later."""
    heads: dict[str, bytes] = {}

    async def fault(asked: Asked, go_on: Pass) -> Given | None:
        if asked.method == "GET" and asked.path.endswith("/head"):
            given = await go_on(asked)
            shown = heads.pop(asked.path, given.body)
            return Given(given.status, given.headers, shown)
        if asked.is_append and asked.body.count(b'"message.added"') == 2 and b'"commit_id"' not in asked.body:
            path = asked.path.removesuffix("/events") + "/head"
            given = await go_on(asked)
            if given.status != 200:
                return given
            heads[path] = given.with_json({**given.json, "seq": given.json["seq"] - 2}).body
            return given
        return None

    return fault
