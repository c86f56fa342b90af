"""The maximum over any range of a growing list of numbers.

Events name ranges of earlier events, and a model call's range may be the whole session. Looking at each event of each
range would take quadratic time. Blocks with their maxima reduce it to a few slices for any range.
"""

from __future__ import annotations

from array import array

_BLOCK = 256


class RangeMaxima:
    """Numbers from 0 up, by position; 0 is nothing. Position 0 is unused, as seqs begin at 1."""

    def __init__(self) -> None:
        self._values = array("q", [0])
        self._blocks = array("q", [0])

    def __getitem__(self, place: int) -> int:
        return self._values[place]

    def __len__(self) -> int:
        return len(self._values)

    def append(self, value: int) -> None:
        if len(self._values) % _BLOCK == 0:
            self._blocks.append(0)
        self._values.append(value)
        if value > self._blocks[-1]:
            self._blocks[-1] = value

    def skip(self, count: int) -> None:
        """Appends nothing, `count` times."""
        self._values.extend(array("q", bytes(8 * count)))
        self._blocks.extend(array("q", bytes(8 * ((len(self._values) - 1) // _BLOCK + 1 - len(self._blocks)))))

    def top(self, first: int, last: int) -> int:
        """The greatest value of a range, both ends included; 0 when there is none."""
        low, high = first // _BLOCK + 1, last // _BLOCK
        values = self._values
        if low >= high:
            return max(values[first : last + 1], default=0)
        return max(
            max(values[first : low * _BLOCK], default=0),
            max(self._blocks[low:high], default=0),
            max(values[high * _BLOCK : last + 1], default=0),
        )

    def newest(self, first: int, last: int, value: int) -> int:
        """The last place in a range whose value is at least `value`; 0 when there is none."""
        place = last
        while place >= first:
            block = place // _BLOCK
            if self._blocks[block] < value:
                place = block * _BLOCK - 1
                continue
            for at in range(place, max(first, block * _BLOCK) - 1, -1):
                if self._values[at] >= value:
                    return at
            place = block * _BLOCK - 1
        return 0
