"""The contract of every engine: one test for each promise of wakelog.engine.

    from wakelog.testing.contract import EngineContract

    class TestMine(EngineContract):
        def make_engine(self, tmp_path):
            return MyEngine(tmp_path / "store")

An engine's test file needs nothing more. `make_engine` is called again with the same folder to open the same store a
second time. An engine without persistent storage returns its only object from `another` and `reopen`.
"""

from wakelog.testing.contract.abilities import AbilityChecks
from wakelog.testing.contract.append import AppendChecks
from wakelog.testing.contract.append_checks import JudgeChecks
from wakelog.testing.contract.delete import DeleteChecks
from wakelog.testing.contract.fork import ForkChecks
from wakelog.testing.contract.names import NameChecks
from wakelog.testing.contract.read import ReadChecks
from wakelog.testing.contract.sessions import ListChecks
from wakelog.testing.contract.surgery import RemovalChecks
from wakelog.testing.contract.wait import WaitChecks

__all__ = ["EngineContract"]


class EngineContract(
    AppendChecks,
    JudgeChecks,
    ReadChecks,
    ListChecks,
    NameChecks,
    ForkChecks,
    DeleteChecks,
    RemovalChecks,
    WaitChecks,
    AbilityChecks,
):
    """Everything an engine promises. Subclass it and supply `make_engine`."""
