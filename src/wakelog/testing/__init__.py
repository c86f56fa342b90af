"""For engine authors, and for our own tests: what an engine must do, and ways to try it.

- `contract.EngineContract` is one pytest test for each promise of wakelog.engine. Subclass it, supply `make_engine`,
  and an engine's test file is done in ten lines.
- `machine.LogMachine` plays random verbs on logs over an engine and on `toy`, a model small enough to be obviously
  right. `strategies` holds the values and events it draws.
- `builders` makes commits for tests that talk to an engine directly; `lossy` loses an engine's answers; `faults` kills
  processes, fills disks and cuts the power.

Needs pytest and hypothesis (`pip install wakelog[test]`). No other room imports this one.
"""

import pytest

# Asserts in a module that is not itself a test file only explain themselves if pytest is told before it is imported.
pytest.register_assert_rewrite("wakelog.testing.contract", "wakelog.testing.machine")
