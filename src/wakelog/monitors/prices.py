"""Prices of models: a dated table that people can see and edit, and the cost of a call.

The built-in table (prices.toml beside this file) is small and dated. A `prices.toml` in the user's settings folder adds
to it; its rows for a model replace all built-in rows for that model. A model in neither has no known price: nothing is
guessed.

Amounts are exact: dollars per million tokens are micro-dollars per token, so the cost of a call is a sum of decimal
products. Only the sum is rounded, up to a whole micro-dollar, so rounding never lets a session exceed its limit.
"""

from __future__ import annotations

import datetime
import decimal
import functools
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from wakelog.errors import InvalidInputError, NotAllowedError
from wakelog.model.usage import Usage

FILE = "prices.toml"
AMOUNTS = ("input", "output", "cache_read", "cache_write", "cache_write_1h", "reasoning")
_FIELDS = frozenset({"provider", "models", "model", "from", "until", "source", *AMOUNTS})


class Price(msgspec.Struct, frozen=True):
    """What a model costs, in dollars per million tokens, from day `since` until before day `until`."""

    provider: str
    model: str
    amounts: dict[str, decimal.Decimal]
    since: str = ""
    until: str = ""
    origin: str = "built-in"
    """The file it is from, or `built-in`."""
    source: str = ""
    """Where it was found: `list: …` for a page of the provider, `second-hand: …` for others."""

    @property
    def name(self) -> str:
        """The name stored with costs that were computed from it."""
        return f"{self.provider}/{self.model}" + (f" from {self.since}" if self.since else "")

    def holds(self, day: str) -> bool:
        return self.since <= day and (not self.until or day < self.until)

    def amount(self, kind: str) -> decimal.Decimal:
        """The price of a kind of tokens. If not listed, reasoning costs the same as output, and cache as input."""
        if kind in self.amounts:
            return self.amounts[kind]
        if kind == "cache_write_1h":
            return self.amount("cache_write")
        return self.amounts["output" if kind == "reasoning" else "input"]

    def usd_micros(self, usage: Usage) -> int:
        total = sum((getattr(usage, kind) * self.amount(kind) for kind in AMOUNTS), decimal.Decimal(0))
        return int(total.to_integral_value(decimal.ROUND_CEILING))


class Prices(msgspec.Struct, frozen=True):
    rows: tuple[Price, ...] = ()
    as_of: str = ""
    source: str = ""
    file: str = ""
    """The user's own file; it need not exist."""

    def find(self, model: str, provider: str, at_us: int) -> Price | None:
        """The price of a model at a time. Without a provider, only one provider may have that model."""
        day = datetime.datetime.fromtimestamp(at_us / 1e6, datetime.UTC).strftime("%Y-%m-%d")
        prices = [p for p in self.rows if p.model == model and p.holds(day) and provider in ("", p.provider)]
        return prices[-1] if len({p.provider for p in prices}) == 1 else None

    def require(self, model: str, provider: str, at_us: int) -> None:
        """NotAllowedError, kind `price-unknown`, if there is no price, so that a limit in money cannot be kept."""
        if self.find(model, provider, at_us) is None:
            raise unknown_price(model, provider, self.file)


def unknown_price(model: str, provider: str, file: str) -> NotAllowedError:
    whose = f"{model!r} of {provider}" if provider else repr(model)
    return NotAllowedError(
        f"there is a limit in money, but no price is known for the model {whose}, so its cost cannot be counted",
        kind="price-unknown",
        hint=f'add to {file or FILE}: [[price]] provider = "{provider or "…"}", models = ["{model}"], input = "…", '
        'output = "…" (dollars for a million tokens; wakelog cost --prices shows the table); or use a limit in tokens',
    )


@functools.cache
def built_in() -> Prices:
    return parse((Path(__file__).parent / FILE).read_text(encoding="utf-8"), "built-in")


def load(file: Path) -> Prices:
    """The built-in table with the user's own file over it, if there is one."""
    shipped = msgspec.structs.replace(built_in(), file=str(file))
    if not os.path.isfile(file):
        return shipped
    try:
        own = parse(file.read_text(encoding="utf-8"), str(file))
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidInputError(f"{file} cannot be read: {exc}", kind="bad-prices", hint="correct the file") from exc
    replaced = {(p.provider, p.model) for p in own.rows}
    prices = tuple(p for p in shipped.rows if (p.provider, p.model) not in replaced)
    return msgspec.structs.replace(shipped, rows=(*prices, *own.rows))


def parse(text: str, origin: str) -> Prices:
    """A table from TOML: `as_of`, `source`, and any number of `[[price]]`."""
    import tomllib

    try:
        content = tomllib.loads(text, parse_float=decimal.Decimal)
    except tomllib.TOMLDecodeError as exc:
        raise InvalidInputError(f"{origin} is not TOML: {exc}", kind="bad-prices", hint="correct the file") from exc
    unknown = content.keys() - {"as_of", "source", "price"}
    listed = content.get("price", [])
    if unknown or not isinstance(listed, list):
        raise _bad(origin, f"{', '.join(sorted(unknown)) or 'price'} is not known here", "use [[price]] for each price")
    rows = [row for number, fields in enumerate(listed, 1) for row in _rows(fields, origin, number)]
    _check_overlaps(rows, origin)
    return Prices(tuple(rows), _day(content.get("as_of", ""), origin), str(content.get("source", "")))


def _rows(fields: Any, origin: str, number: int) -> Iterable[Price]:
    where = f"{origin}: price {number}"
    if not isinstance(fields, dict) or (unknown := fields.keys() - _FIELDS):
        what = ", ".join(sorted(unknown)) if isinstance(fields, dict) else "it"
        raise _bad(where, f"{what} is not known", f"one of {', '.join(sorted(_FIELDS))}")
    models = fields.get("models", [fields["model"]] if "model" in fields else [])
    provider = fields.get("provider", "")
    if not isinstance(provider, str) or not provider or not isinstance(models, list) or not models:
        raise _bad(where, "it has no provider or no models", 'provider = "openai", models = ["gpt-…"]')
    amounts = {kind: _amount(fields[kind], f"{where}: {kind}") for kind in AMOUNTS if kind in fields}
    if not amounts.keys() >= {"input", "output"}:
        raise _bad(where, "it needs input and output", 'input = "1.25", output = "10.00"; both may be "0"')
    since, until = _day(fields.get("from", ""), where), _day(fields.get("until", ""), where)
    for model in models:
        yield Price(provider, str(model), amounts, since, until, origin, str(fields.get("source", "")))


def _amount(value: Any, where: str) -> decimal.Decimal:
    try:
        amount = value if isinstance(value, decimal.Decimal) else decimal.Decimal(str(value).lstrip("$"))
    except decimal.InvalidOperation:
        amount = decimal.Decimal(-1)
    if isinstance(value, bool) or not amount.is_finite() or amount < 0:
        raise _bad(where, f"{value!r} is not an amount", 'dollars for a million tokens, such as "0.25"')
    return amount


def _day(value: Any, where: str) -> str:
    text = value.isoformat() if isinstance(value, datetime.date) else str(value)
    try:
        return datetime.date.fromisoformat(text).isoformat() if text else ""
    except ValueError:
        raise _bad(where, f"{text!r} is not a day", 'write it as "2026-11-15"') from None


def _check_overlaps(rows: list[Price], origin: str) -> None:
    seen: dict[tuple[str, str], list[Price]] = {}
    for row in rows:
        for other in seen.setdefault((row.provider, row.model), []):
            if (not row.until or other.since < row.until) and (not other.until or row.since < other.until):
                raise _bad(origin, f"{row.provider}/{row.model} has two prices at one time", "give them from and until")
        seen[row.provider, row.model].append(row)


def _bad(where: str, what: str, hint: str) -> InvalidInputError:
    return InvalidInputError(f"{where}: {what}", kind="bad-prices", hint=hint)
