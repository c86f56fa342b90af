"""What happens around a command."""

import pytest

from wakelog.cli import main


def test_an_interrupt_while_modules_are_imported_is_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("wakelog.cli._run", interrupt)
    monkeypatch.setattr("gc.set_threshold", lambda *_: None)
    monkeypatch.setattr("gc.freeze", lambda: None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
