"""Strict replays: recorded results only, nothing runs, and differences are named."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import wakelog
from tests.replay import agents
from tests.replay.agents import clock, flaky, model, ran, run, search, send
from wakelog.errors import CallFailedError, DivergenceError, NotAllowedError, NotFoundError, UnsupportedError
from wakelog.session import Session


@pytest.fixture(autouse=True)
def _fresh() -> None:
    ran.clear()
    agents.WORLD["now"] = 100


def recorded(session: Session[Any], *inputs: str) -> Session[Any]:
    for text in inputs:
        run(session, text)
    ran.clear()
    agents.WORLD["now"] = 5000
    return session


def diverges(session: Session[Any], agent: Any, where: str = "@1", **how: Any) -> DivergenceError:
    with pytest.raises(DivergenceError) as caught, session.replay(where, **how) as replay:
        replay.run(agent)
    assert ran == []
    return caught.value


def test_the_same_agent_gets_the_same_and_nothing_runs(session: Session[Any], no_network: None) -> None:
    with pytest.raises(AssertionError, match="reached for the network"):
        run(session, "outside")  # the guard does hold: this tool does use the network
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("socket.getaddrinfo", lambda *a: [])
        recorded(session, "one", "two")
    with session.replay("@2..@3") as replay:
        assert replay.inputs == ["one", "two"]
        assert run(replay.session, "one") == "sent to ada"
        assert run(replay.session, "two") == "sent to ada"
    assert ran == []
    assert agents.WORLD["now"] == 5000
    report = replay.report
    assert report.ok
    assert [row.verdict for row in report.steps] == ["same"] * 8
    assert {row.how for row in report.steps} == {"recorded"}
    assert str(report) == "agent@2..@3: the same 8 steps"


def test_it_leaves_no_trace(session: Session[Any], store: wakelog.Store) -> None:
    recorded(session, "one", "two")
    before = [(h.session, h.seq, h.hash) for h in store.sessions()]
    cursor = [c.cursor for c in store.engine.changes()]
    with session.replay() as replay:
        replay.run(run)
    diverges(session, lambda s, text: run(s, text + "!"))
    assert [(h.session, h.seq, h.hash) for h in store.sessions()] == before
    assert [c.cursor for c in store.engine.changes()] == cursor


def test_it_comes_out_in_the_same_state_at_the_same_event(session: Session[Any]) -> None:
    recorded(session, "one", "two")
    with session.replay("@1..@2") as replay:
        replay.run(run)
    assert replay.session.id == session.id
    assert replay.session.head.seq == session.head.seq
    assert replay.session.log.state_hash() == session.log.state_hash()
    assert [e.kind for e in replay.session.events()] == [e.kind for e in session.events()]
    assert [m.text for m in replay.session.messages()] == [m.text for m in session.messages()]
    assert replay.report.state == ()


def test_what_is_different_in_the_end_is_told(session: Session[Any]) -> None:
    recorded(session, "one")

    def other(s: Session[Any], text: str) -> None:
        with s.turn(user=text) as turn:
            found = search(text)
            answer = turn.model(model, [text, *found])
            s.fact("found", "many")
            turn.data["said"] = True
            send("ada", f"{answer['text']} at {clock()}")

    with session.replay("@1") as replay:
        replay.run(other)
    assert replay.report.ok
    assert replay.report.state == ("/facts/found", "/data/said")


def test_a_changed_argument_is_named(session: Session[Any]) -> None:
    recorded(session, "one")

    def other(s: Session[Any], text: str) -> None:
        with s.turn(user=text) as turn:
            found = search(text)
            turn.model(model, [text, *found])
            clock()
            send("bob", "5 messages")

    error = diverges(session, other)
    assert (error.kind, error.step) == ("call-differs", 4)
    assert error.message == (
        "turn @1 called send(to='bob', body='5 messages') but the recording has send(to='ada',"
        f" body='4 messages, 100 at 101') at step 4 of 4 (e{error.seq}). The arguments to and body differ."
    )
    assert session.log.entry(error.seq).body["tool"] == "send"
    assert 'mode="fill"' in error.hint


def test_the_place_where_long_texts_part_is_shown(session: Session[Any]) -> None:
    with session.turn(user="go"):
        search("x" * 500 + "old" + "y" * 500)

    def other(s: Session[Any], text: str) -> None:
        with s.turn(user=text):
            search("x" * 500 + "new" + "y" * 500)

    ran.clear()
    message = diverges(session, other).message
    assert "xxnewyy" in message
    assert "xxoldyy" in message
    assert len(message) < 400


def test_an_extra_call_is_named_with_the_step_that_should_have_come(session: Session[Any]) -> None:
    recorded(session, "one")

    def other(s: Session[Any], text: str) -> None:
        with s.turn(user=text):
            search(text)
            flaky("own")

    error = diverges(session, other)
    assert (error.kind, error.step) == ("call-not-recorded", 2)
    assert "called flaky(key='own') but the recording has opus(" in error.message


def test_a_call_after_the_end_is_named(session: Session[Any]) -> None:
    recorded(session, "one")

    def other(s: Session[Any], text: str) -> None:
        with s.turn(user=text) as turn:
            found = search(text)
            answer = turn.model(model, [text, *found])
            send("ada", f"{answer['text']} at {clock()}")
            search("more")

    error = diverges(session, other)
    assert (error.kind, error.step) == ("call-not-recorded", 5)
    assert error.message == "turn @1 called search(q='more', limit=3) but the recording has nothing more in this turn."


def test_a_missing_call_is_an_error_at_the_end(session: Session[Any]) -> None:
    recorded(session, "one")

    def other(s: Session[Any], text: str) -> None:
        with s.turn(user=text) as turn:
            turn.model(model, [text, *search(text)])
            clock()

    error = diverges(session, other)
    assert (error.kind, error.step) == ("call-missing", 4)
    assert "did not call send(to='ada'" in error.message


def test_a_missing_call_is_an_error_when_the_next_turn_begins(session: Session[Any]) -> None:
    recorded(session, "one", "two")

    def other(s: Session[Any], text: str) -> None:
        with s.turn(user=text) as turn:
            turn.model(model, [text, *search(text)])
            clock()
        assert text == "one"

    assert diverges(session, other, "@1..@2").step == 4


def test_a_turn_that_is_not_begun_is_missing(session: Session[Any]) -> None:
    with session.turn(user="one"):
        search("a")
    with session.turn(user="two"):
        pass
    ran.clear()
    with pytest.raises(DivergenceError) as caught, session.replay("@1..@2") as replay, replay.session.turn(user="one"):
        search("a")
    assert caught.value.kind == "turn-differs"
    assert "turn @2 was not started: 'two'" in caught.value.message
    assert [row.verdict for row in replay.report.steps] == ["same", "missing"]


def test_another_input_or_one_turn_more_is_different(session: Session[Any]) -> None:
    recorded(session, "one")
    error = diverges(session, lambda s, text: run(s, "uno"))
    assert error.kind == "turn-differs"
    assert error.message.startswith("turn @1 began with 'uno' but the recording has 'one' (e")

    def twice(s: Session[Any]) -> None:
        run(s, "one")
        run(s, "again")

    error = diverges(session, twice)
    assert (error.kind, error.message) == ("turn-differs", "turn @2 is new: 'again'")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"temperature": 0.7}, "The parameter temperature differs."),
        ({"model": "haiku"}, "The model differs."),
        ({"messages": ["another"]}, "What it was shown differs (of that only the hash is recorded)."),
    ],
)
def test_a_changed_model_call_is_named(session: Session[Any], changed: dict[str, Any], sentence: str) -> None:
    recorded(session, "one")

    def other(s: Session[Any], text: str) -> None:
        with s.turn(user=text) as turn:
            turn.model(model, **{"messages": [text, *search(text)], **changed})

    error = diverges(session, other)
    assert (error.kind, error.step) == ("call-differs", 2)
    assert error.message.endswith(sentence)


def test_another_order_is_named_at_the_first_step_out_of_it(session: Session[Any]) -> None:
    with session.turn(user="go"):
        search("a")
        search("b")
        search("c")
    ran.clear()

    def other(s: Session[Any], text: str) -> None:
        with s.turn(user=text):
            search("a")
            search("c")
            search("b")

    error = diverges(session, other)
    assert (error.kind, error.step) == ("call-out-of-order", 2)
    assert "called search(q='c', limit=3) before search(q='b', limit=3), which the recording has first" in error.message
    with session.replay("@1", order="any") as replay:
        replay.run(other)
    assert replay.report.ok


def test_calls_side_by_side_may_come_in_any_order(session: Session[Any]) -> None:
    def abreast(s: Session[Any], names: list[str]) -> None:
        def one(name: str) -> list[str]:
            return search(name)

        with s.turn(user="go"), ThreadPoolExecutor(4) as pool:
            list(pool.map(s.calls.bind(one), names))

    abreast(session, ["a", "b", "c", "d"])
    ran.clear()
    with session.replay("@1") as replay:
        abreast(replay.session, ["d", "c", "b", "a"])
    assert replay.report.ok
    assert ran == []


def test_the_same_call_twice_gets_both_results_in_order(session: Session[Any]) -> None:
    with session.turn(user="go"):
        first, second = clock(), clock()
    assert first != second
    with session.replay("@1") as replay, replay.session.turn(user="go"):
        assert (clock(), clock()) == (first, second)
    assert agents.WORLD["now"] == second


def test_async_tools_and_models(session: Session[Any], no_network: None) -> None:
    calls: list[str] = []

    @wakelog.tool(effect="read")
    async def fetch(url: str) -> str:
        calls.append(url)
        await asyncio.sleep(0)
        return f"page {url}"

    async def chat(messages: list[str], model: str = "opus") -> str:
        calls.append("chat")
        return "hm"

    async def agent(s: Session[Any], text: str) -> str:
        async with s.turn(user=text) as turn:
            pages = await asyncio.gather(*(fetch(f"{text}{n}") for n in range(5)))
            answer: str = await turn.amodel(chat, pages)
            await fetch("last")
            return answer

    asyncio.run(agent(session, "u"))
    calls.clear()

    async def again() -> None:
        async with session.replay("@1") as replay:
            assert await agent(replay.session, "u") == "hm"
        assert replay.report.ok

    asyncio.run(again())
    with session.replay("@1") as replay:
        assert replay.run(agent) == "hm"
    assert calls == []

    async def shorter(s: Session[Any], text: str) -> None:
        async with s.turn(user=text):
            await fetch("last")

    error = diverges(session, shorter)
    assert (error.kind, error.step) == ("call-missing", 1)


def test_an_agent_that_swallows_the_error_has_still_diverged(session: Session[Any]) -> None:
    recorded(session, "one")
    swallowed: list[str] = []

    def stubborn(s: Session[Any], text: str) -> None:
        with s.turn(user=text):
            for q in ("x", text, "y"):
                try:
                    search(q)
                except Exception as exc:
                    swallowed.append(str(exc))

    error = diverges(session, stubborn)
    assert error.step == 1
    assert len(set(swallowed)) == 1
    assert len(swallowed) == 3


def test_an_agent_that_makes_something_else_of_it_too(session: Session[Any]) -> None:
    recorded(session, "one")

    def wrapping(s: Session[Any], text: str) -> None:
        try:
            with s.turn(user=text):
                search("x")
        except DivergenceError as exc:
            raise RuntimeError("agent failed") from exc

    error = diverges(session, wrapping)
    assert isinstance(error.__cause__, RuntimeError)


def test_the_agents_own_error_goes_on_and_says_how_far_it_came(session: Session[Any]) -> None:
    recorded(session, "one")
    with pytest.raises(ZeroDivisionError) as caught, session.replay("@1") as replay, replay.session.turn(user="one"):
        search("one")
        1 / 0  # noqa: B018
    assert "step 2 of 4" in "".join(caught.value.__notes__)
    assert replay.report.error.startswith("ZeroDivisionError")


@pytest.mark.parametrize(("key", "error"), [("own", agents.Broken), ("lookup", KeyError), ("net", ConnectionError)])
def test_failures_are_raised_as_they_were(session: Session[Any], key: str, error: type[Exception]) -> None:
    with session.turn(user="go"), pytest.raises(error) as first:
        flaky(key)
    ran.clear()
    with session.replay("@1") as replay, replay.session.turn(user="go"), pytest.raises(error) as second:
        flaky(key)
    assert type(second.value) is type(first.value)
    assert str(second.value) == str(first.value)
    assert second.value.args == first.value.args
    assert ran == []


def test_a_turn_that_failed_fails_again_and_the_next_one_follows(session: Session[Any]) -> None:
    def agent(s: Session[Any], key: str) -> None:
        with s.turn(user=key):
            flaky(key)

    for key in ("own", "net"):
        with pytest.raises((agents.Broken, ConnectionError)):
            agent(session, key)
    ran.clear()
    with session.replay() as replay:
        replay.run(agent)
    assert replay.report.ok
    assert ran == []


def test_retries_and_timeouts_come_out_as_they_did(session: Session[Any]) -> None:
    release = threading.Event()
    tries: list[int] = []

    @wakelog.tool(effect="read", timeout_s=0.02)
    def slow() -> None:
        release.wait(180)

    @wakelog.tool(effect="read", retry=2, backoff_s=0.001)
    def thrice() -> str:
        tries.append(1)
        if len(tries) < 3:
            raise ConnectionError("no")
        return "yes"

    def agent(s: Session[Any], text: str) -> tuple[str, str]:
        with s.turn(user=text):
            try:
                slow()
            except TimeoutError as exc:
                return str(exc), thrice()
        raise AssertionError

    first = agent(session, "go")
    release.set()
    tries.clear()
    with session.replay("@1") as replay:
        assert agent(replay.session, "go") == first
    assert tries == []
    assert replay.session.log.state_hash() == session.log.state_hash()


def test_a_call_nobody_knows_the_outcome_of_is_told_as_it_was(session: Session[Any]) -> None:
    release = threading.Event()

    @wakelog.tool(timeout_s=0.02)
    def pay() -> str:
        release.wait(180)
        return "paid"

    @wakelog.tool
    def ship() -> str:
        raise wakelog.UncertainError("the line went dead")

    def agent(s: Session[Any], text: str) -> list[str]:
        with s.turn(user=text):
            said = []
            for tool in (pay, ship):
                try:
                    tool()
                except Exception as exc:
                    said.append(f"{type(exc).__name__}: {exc}")
            return said

    first = agent(session, "go")
    follow = session.follow(after=session.head.seq, timeout_s=60)
    release.set()
    next(follow)  # what came to light later is not what the agent was told
    with session.replay("@1") as replay:
        assert agent(replay.session, "go") == first
    assert [text.partition(":")[0] for text in first] == ["TimeoutError", "UncertainError"]


def test_a_denied_call_is_denied_again(session: Session[Any]) -> None:
    session._runtime.approver = lambda call, arguments: arguments["to"] == "ada"

    def agent(s: Session[Any], text: str) -> list[str]:
        @s.tool(approval=True)
        def mail(to: str) -> str:
            ran.append(to)
            return "sent"

        with s.turn(user=text):
            said: list[str] = []
            for to in ("ada", "bob"):
                outcome = s.call("mail", {"to": to})
                said.append(outcome.status)
                if not outcome.ok:
                    with pytest.raises(CallFailedError):
                        outcome.unwrap()
            return said

    assert agent(session, "go") == ["succeeded", "denied"]
    ran.clear()
    with session.replay("@1") as replay:
        assert agent(replay.session, "go") == ["succeeded", "denied"]
    assert ran == []


def test_calls_of_other_tools_are_theirs_and_not_missing(session: Session[Any]) -> None:
    @wakelog.tool(effect="pure")
    def inner(n: int) -> int:
        ran.append("inner")
        return n + 1

    @wakelog.tool(effect="pure")
    def outer(n: int) -> int:
        return inner(n) + inner(n + 1)

    def agent(s: Session[Any], text: str) -> int:
        with s.turn(user=text):
            return outer(1) + inner(9)

    assert agent(session, "go") == 15
    ran.clear()
    with session.replay("@1") as replay:
        assert agent(replay.session, "go") == 15
    assert ran == []
    assert [row.verdict for row in replay.report.steps] == ["inside", "inside", "same", "same"]
    assert replay.report.ok


def test_a_call_with_a_key_is_answered_whenever_it_is_made_again(session: Session[Any]) -> None:
    @wakelog.tool(key=lambda order: f"order-{order}")
    def charge(order: int) -> str:
        ran.append("charge")
        return f"charged {order}"

    def agent(s: Session[Any], text: str) -> list[str]:
        with s.turn(user=text):
            return [charge(1), charge(1), charge(2)]

    first = [agent(session, "one"), agent(session, "two")]
    ran.clear()
    for where in ("@1..@2", "@2"):
        with session.replay(where) as replay:
            replay.run(agent)
        assert replay.report.ok  # @2 has nothing of its own, and is answered from before
    assert first[0] == first[1]
    assert ran == []


def test_ids_given_by_the_caller_are_the_same(session: Session[Any]) -> None:
    def agent(s: Session[Any], text: str) -> list[str]:
        with s.turn(user=text):
            first, again = s.call(search, {"q": "x"}, id="call-1"), s.call(search, {"q": "x"}, id="call-1")
            s.message("tool", str(first.result), action=first.action)
            return [first.action, again.action, s.call(search, {"q": "x"}).action]

    first = agent(session, "go")
    ran.clear()
    with session.replay("@1") as replay:
        assert agent(replay.session, "go") == first
    assert ran == []


def test_a_tool_bound_to_the_recorded_session_is_answered_too(session: Session[Any]) -> None:
    @session.tool
    def pay(amount: int) -> str:
        ran.append("pay")
        return "paid"

    with session.turn(user="go"):
        pay(3)
    pay(4)
    ran.clear()
    head = session.head.seq
    with session.replay() as replay:
        with replay.session.turn(user="go"):
            assert pay(3) == "paid"
        assert pay(4) == "paid"
    with pytest.raises(DivergenceError), session.replay():
        pay(5)
    assert ran == []
    assert session.head.seq == head


def test_a_turn_of_another_session_is_refused(session: Session[Any], store: wakelog.Store) -> None:
    recorded(session, "one")
    head = session.head.seq
    with pytest.raises(NotAllowedError) as caught, session.replay("@1"):
        run(session, "one")
    assert caught.value.kind == "not-the-replay"
    with pytest.raises(NotAllowedError), session.replay("@1"):
        run(store.session("sub"), "task")
    assert session.head.seq == head
    assert ran == []


def test_nothing_else_can_be_written_through_it(session: Session[Any]) -> None:
    recorded(session, "one")
    replay = session.replay("@1")
    with pytest.raises(UnsupportedError) as caught:
        replay.session.fork()
    assert caught.value.kind == "strict-replay"


def test_an_agent_that_ignores_the_session_is_told(session: Session[Any]) -> None:
    recorded(session, "one")
    with pytest.raises(DivergenceError) as caught, session.replay("@1"):
        pass
    assert any("replay.session" in note for note in caught.value.__notes__)


def test_a_call_that_was_cut_has_no_outcome_to_give(session: Session[Any]) -> None:
    @wakelog.tool
    def hang() -> None:
        raise KeyboardInterrupt

    def agent(s: Session[Any], text: str) -> None:
        with s.turn(user=text):
            search("a")
            hang()

    with pytest.raises(KeyboardInterrupt):
        agent(session, "go")
    ran.clear()
    error = diverges(session, agent)
    assert (error.kind, error.step) == ("no-recorded-outcome", 2)
    assert "The recording ends here." in error.message


def test_an_erased_result_cannot_be_given_again(session: Session[Any]) -> None:
    from wakelog.log.removal import erase

    recorded(session, "one")
    outcome = next(e for e in session.events(kind="action.succeeded"))
    erase(session.log, [outcome.seq], why="ticket 42")
    with pytest.raises(NotFoundError) as caught, session.replay("@1") as replay:
        replay.run(run)
    assert caught.value.kind == "result-gone"
    assert "search(q='one', limit=3), step 1 of 4" in caught.value.message.replace(" (erased)", "")
    assert ran == []


def test_secrets_taken_out_of_the_record_are_no_difference(session: Session[Any]) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"

    @wakelog.tool(effect="read")
    def login(user: str) -> str:
        ran.append("login")
        return f"token {token}"

    @wakelog.tool(effect="read")
    def use(token: str) -> str:
        ran.append("use")
        return "welcome"

    def agent(s: Session[Any], text: str) -> None:
        with s.turn(user=text) as turn:
            given = login("ada")
            use(given)
            turn.model(model, [given])

    agent(session, "go")
    assert token not in str([e.body for e in session.events()])
    ran.clear()
    with session.replay("@1") as replay:
        replay.run(agent)
    assert replay.report.ok
    assert [bool(row.note) for row in replay.report.steps] == [False, True, True]
    assert ran == []


def test_hidden_arguments_are_not_compared(session: Session[Any]) -> None:
    @wakelog.tool(effect="read", redact=("password",))
    def login(user: str, password: str) -> str:
        ran.append("login")
        return "in"

    with session.turn(user="go"):
        login("ada", "1234")
    ran.clear()
    with session.replay("@1") as replay, replay.session.turn(user="go"):
        assert login("ada", "other") == "in"
    assert ran == []


def test_results_come_back_in_their_type(session: Session[Any]) -> None:
    import msgspec

    class Found(msgspec.Struct):
        name: str
        size: int

    def look(name: str) -> Found:
        ran.append("look")
        return Found(name, len(name))

    look.__annotations__["return"] = Found

    def agent(s: Session[Any], text: str) -> int:
        tool = s.tool(effect="read")(look)
        with s.turn(user=text):
            return tool("abc").size

    assert agent(session, "go") == 3
    with session.replay("@1") as replay:
        assert agent(replay.session, "go") == 3


def test_a_recorded_fork_keeps_what_happened(session: Session[Any], store: wakelog.Store) -> None:
    recorded(session, "one")
    with session.replay("@1", record=True) as replay:
        replay.run(run)
    assert replay.report.ok
    assert replay.report.fork == replay.session.id != session.id
    forked = next(e for e in replay.session.events(kind="session.forked"))
    assert forked.body["why"] == "replay of agent@1 (strict)"
    answered = [e for e in replay.session.events(kind="action.recorded") if "answered from the record" in e.body["why"]]
    assert len(answered) == 4
    assert replay.session.state().budget.spent == {}
    assert store.resume(replay.session.id).verify().ok
    assert ran == []


def test_what_cannot_be_replayed_says_so(session: Session[Any]) -> None:
    with pytest.raises(NotFoundError) as caught:
        session.replay()
    assert caught.value.kind == "nothing-to-replay"
    recorded(session, "one")
    with pytest.raises(wakelog.InvalidInputError) as wrong:
        session.replay("@1", mode="fast")  # type: ignore[arg-type]
    assert wrong.value.kind == "bad-replay"


def test_a_context_built_from_the_session_is_the_same(session: Session[Any]) -> None:
    """What a model is shown is built from messages, facts and handles, so their numbers must be the same again."""

    def agent(s: Session[Any], text: str) -> None:
        with s.turn(user=text) as turn:
            for n in range(3):
                answer = turn.model(model, messages=s.context.window(1400))
                s.message("assistant", answer["text"])
                outcome = s.call(search, {"q": f"{text} {n}" + "x" * 300})
                s.message("tool", str(outcome.result), action=outcome.action)
                s.fact(f"seen {n}", len(outcome.result))

    for text in ("one", "two"):
        agent(session, text)
    assert session.state().evicted_keys  # handles are among what it was shown
    ran.clear()
    with session.replay("@1..@2") as replay:
        replay.run(agent)
    assert replay.report.ok
    with session.replay("@2") as replay:
        replay.run(agent)
    assert replay.session.log.state_hash() == session.log.state_hash()
    assert ran == []


def test_large_results_are_given_whole(session: Session[Any]) -> None:
    @wakelog.tool(effect="read")
    def page(n: int) -> dict[str, str]:
        ran.append("page")
        return {"text": "é" * n}

    def agent(s: Session[Any], text: str) -> int:
        with s.turn(user=text * 20_000):
            found = page(200_000)["text"] + page(200_000)["text"]
            s.message("assistant", found)
            return len(found)

    assert agent(session, "go") == 400_000
    ran.clear()
    with session.replay("@1") as replay:
        assert agent(replay.session, "go") == 400_000
    assert ran == []
    assert replay.session.log.state_hash() == session.log.state_hash()
    assert replay.session.messages()[-1].text == session.messages()[-1].text


def test_an_answer_is_the_clients_own_type_again(session: Session[Any]) -> None:
    from pydantic import BaseModel

    class Answer(BaseModel):
        text: str

    class Stream:
        pass

    def create(messages: list[str], stream: bool = False) -> Any:
        ran.append("create")
        return Answer(text="hm")

    create.__annotations__["return"] = Answer | Stream

    def agent(s: Session[Any], text: str) -> str:
        with s.turn(user=text) as turn:
            return str(turn.model(create, [text]).text)

    assert agent(session, "go") == "hm"
    ran.clear()
    with session.replay("@1") as replay:
        assert replay.run(agent) == "hm"
    assert ran == []
