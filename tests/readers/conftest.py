"""The readers that tests here have asked end with the run."""

from collections.abc import Iterator

import pytest

from tests.readers.lasting import LASTING


@pytest.fixture(scope="session", autouse=True)
def _readers_that_end() -> Iterator[None]:
    yield
    for reader in LASTING.values():
        reader.end()
