import shutil

import pytest

from tests.mcp.foreign.packages import Packages, install


@pytest.fixture(scope="session")
def packages() -> Packages:
    """MCP clients and servers that others wrote."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not here, and these clients and servers come from it")
    return install()
