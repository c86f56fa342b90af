"""Children get the signals that a shell's foreground job has, whoever started the tests.

A background job and many CI runners ignore SIGINT, `nohup` ignores SIGHUP, and some block signals; all of that is
inherited over exec, and a child that ignores a signal does not end by it. A signal that is *handled* is back to its
default after exec. So whatever this process ignores, it handles by doing nothing: for itself nothing changes, and no
test can forget to ask for it.
"""

import contextlib
import signal
from collections.abc import Iterator

# Python ignores these on purpose, and subprocess gives them back to children.
_PYTHONS_OWN = {signal.SIGPIPE, signal.SIGXFSZ}


@contextlib.contextmanager
def default_for_children() -> Iterator[None]:
    ignored = [
        number
        for number in signal.valid_signals() - _PYTHONS_OWN
        if number not in (signal.SIGKILL, signal.SIGSTOP) and signal.getsignal(number) == signal.SIG_IGN
    ]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    blocked = signal.pthread_sigmask(signal.SIG_SETMASK, [])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)
