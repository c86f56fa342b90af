"""The store of the tests of provenance: a clock that ticks one second an event."""

from tests.provenance.conftest import *  # noqa: F403
