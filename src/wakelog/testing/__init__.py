"""For engine authors and our own tests: what an engine must do, and ways to test it.

- `contract.EngineContract` has one pytest test for each promise of wakelog.engine. Subclass it and supply
  `make_engine`; an engine's test file needs ten lines.
- `machine.LogMachine` runs random verbs on logs over an engine and on `toy`, a model small enough to be obviously
  right. `strategies` has the values and events that it draws.
- `builders` makes commits for tests that use an engine directly. `faults` loses answers, kills processes, fills disks
  and cuts the power.

Needs pytest and hypothesis (`pip install wakelog[test]`). No other room imports this one.
"""

import pytest

# pytest explains failed asserts outside test files only if the module is registered before it is imported.
pytest.register_assert_rewrite("wakelog.testing.contract", "wakelog.testing.machine")
