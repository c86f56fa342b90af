"""What a comparison calls the model of a call."""

from tests.cli.conftest import Cli
from wakelog.model import events as ev
from wakelog.store import Store


def test_a_model_without_a_name_is_not_named_twice(move: Cli, store: Store) -> None:
    for name, output in (("named-a", "yes"), ("named-b", "no")):
        session = store.session(name)
        with session.turn("may I?"):
            call = ev.ActionRecorded(action="1", tool="model", effect="model", input="may I?", output=output)
            session.append(call)
    told = move("compare", "named-a", "named-b")
    assert "● model" in told.out
    assert "model model" not in told.out
