"""The contract that every engine keeps: one test for each promise of wakelog.engine.

    from wakelog.testing.contract import EngineContract

    class TestMine(EngineContract):
        def make_engine(self, tmp_path):
            return MyEngine(tmp_path / "store")

That is all an engine's test file needs. `make_engine` is called again with the same folder to open the same store a
second time. An engine that keeps nothing on a disk returns its only object from `another` and `reopen`.
"""

from wakelog.testing.contract.abilities import AbilityChecks
from wakelog.testing.contract.append import Appending
from wakelog.testing.contract.append_checks import Judging
from wakelog.testing.contract.delete import Deleting
from wakelog.testing.contract.fork import Forking
from wakelog.testing.contract.names import Naming
from wakelog.testing.contract.read import Reading
from wakelog.testing.contract.sessions import Listing
from wakelog.testing.contract.surgery import Operating
from wakelog.testing.contract.wait import Waiting

__all__ = ["EngineContract"]


class EngineContract(
    Appending, Judging, Reading, Listing, Naming, Forking, Deleting, Operating, Waiting, AbilityChecks
):
    """Everything an engine promises. Subclass it and supply `make_engine`."""
