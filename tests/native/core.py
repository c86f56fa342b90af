"""The native core for tests. Where it is not installed they are skipped; `make test-native` wants it to be there."""

import os
from typing import Any

import pytest

from wakelog import native


def installed_core() -> Any:
    """The core, or a skipped module."""
    if native.core is None and os.environ.get("WAKELOG_TEST_NATIVE"):
        raise AssertionError(f"the native core is not in use: {native.reason}")
    if native.core is None:
        pytest.skip(f"the native core is not in use: {native.reason}", allow_module_level=True)
    return native.core
