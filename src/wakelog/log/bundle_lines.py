"""The lines of a bundle, plain or gzipped, one at a time and never more than was allowed.

A gzipped file of a megabyte may unpack to a gigabyte. It is unpacked piece by piece, so that the limit holds before the
memory is taken, and no line is decoded that would become much bigger than it is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import IO, NoReturn

from wakelog.codec.weight import is_heavy_json
from wakelog.errors import InvalidInputError

PIECE = 1 << 18
_GZIP = b"\x1f\x8b"
# The fewest bytes of a commit's line for each of its values: a record is a list of three, and its header alone has 100.
_BYTES_PER_VALUE, _SLACK = 12, 100


def read_lines(source: IO[bytes], size_max: int) -> Iterator[bytes]:
    """The lines of a bundle, with their ends; InvalidInputError when it is larger than `size_max` when unpacked."""
    rest = bytearray()
    size = 0
    for piece in _pieces(source):
        size += len(piece)
        if size > size_max:
            raise InvalidInputError(
                f"the bundle is larger than {size_max:,} bytes when unpacked",
                kind="bundle-too-large",
                hint="a server takes larger ones with `wakelog serve --max-bundle`",
            )
        *whole, last = piece.split(b"\n")
        for part in whole:
            rest += part
            rest += b"\n"
            yield _checked(rest)
            rest.clear()
        rest += last
    if rest:
        yield _checked(rest)


def refuse_bundle(why: str, cause: BaseException | None = None) -> NoReturn:
    raise InvalidInputError(f"this is not a whole wakelog bundle: {why}", kind="bad-bundle") from cause


def _checked(line: bytearray) -> bytes:
    data = bytes(line)
    if len(data) < 3:
        refuse_bundle("it has an empty line")
    if is_heavy_json(data, _SLACK + len(data) // _BYTES_PER_VALUE):
        refuse_bundle("a line holds more values than a commit of its size")
    return data


def _pieces(source: IO[bytes]) -> Iterator[bytes]:
    piece = source.read(2)
    if piece != _GZIP:
        while piece:
            yield piece
            piece = source.read(PIECE)
        return
    unzip = zlib.decompressobj(wbits=31)
    try:
        while piece and not unzip.eof:
            yield unzip.decompress(piece, PIECE)
            piece = unzip.unconsumed_tail or source.read(PIECE)
    except zlib.error as exc:
        refuse_bundle(str(exc), exc)
    if not unzip.eof:
        refuse_bundle("it is cut off")
