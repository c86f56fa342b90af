"""Looks for what should be gone: in the raw bytes of all files of a folder, and inside everything packed in them."""

from pathlib import Path

import zstandard

FRAME = b"\x28\xb5\x2f\xfd"


def residue(folder: Path, marker: str) -> list[str]:
    """The places where `marker` is still found, as plain bytes or in a compressed frame, in use or in a free page."""
    wanted = marker.encode()
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        data = path.read_bytes()
        if wanted in data:
            found.append(f"{path.name} at {data.index(wanted)}")
        at = data.find(FRAME)
        while at >= 0:
            if wanted in _unpacked(data[at : at + (1 << 20)]):
                found.append(f"{path.name} in the frame at {at}")
            at = data.find(FRAME, at + 1)
    return found


def _unpacked(data: bytes) -> bytes:
    """What can be had of a frame, also when only its beginning is there."""
    out = b""
    unpack = zstandard.ZstdDecompressor().decompressobj()
    try:
        for i in range(0, len(data), 4096):
            out += unpack.decompress(data[i : i + 4096])
            if unpack.eof:
                break
    except zstandard.ZstdError:
        pass
    return out
