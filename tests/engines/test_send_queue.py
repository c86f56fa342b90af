"""The queue of appends to a server: an error of a request reaches each append that was in it."""

from collections.abc import Sequence

import pytest

from wakelog.engines.remote.append_queue import SendQueue
from wakelog.engines.remote.wire import SubmitAnswer
from wakelog.errors import NotAllowedError, UnavailableError, WakelogError
from wakelog.model.records import Commit


@pytest.mark.parametrize(
    "given",
    [
        NotAllowedError("no", kind="key-refused", hint="another key", legal=("read",)),
        UnavailableError("no answer", kind="answer-unknown", hint="again"),
    ],
    ids=lambda error: error.kind,
)
def test_each_append_raises_an_error_of_its_own_with_the_same_content(given: WakelogError) -> None:
    def send(groups: Sequence[tuple[Commit, ...]]) -> Sequence[SubmitAnswer]:
        raise given

    queue = SendQueue(send, lambda: None)
    raised = []
    for pending in [queue.submit(()), queue.submit(())]:
        with pytest.raises(type(given)) as caught:
            pending.result()
        raised.append(caught.value)
        assert caught.value.__cause__ is given
        assert vars(caught.value) == vars(given)
    assert raised[0] is not raised[1]
    assert given not in raised
