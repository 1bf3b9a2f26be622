"""Amounts and durations as people write them: ``8Gi``, ``500m``, ``1h30m``.

Quantities follow Kubernetes' own reading of them, to the last digit. Nothing here knows what is
being measured; whoever calls does.
"""

import re
from datetime import timedelta
from decimal import ROUND_CEILING, ROUND_UP, Context, Decimal
from functools import lru_cache

__all__ = [
    "MIB",
    "format_bytes",
    "format_mib",
    "mib",
    "parse_bandwidth",
    "parse_duration",
    "parse_quantity",
]

MIB = 2**20

_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]{1,3}))?"
)
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_LARGEST_BINARY = Decimal(2**63 - 1)
_NANO = Decimal("1e-9")
_EXACT = Context(prec=2000)  # more digits than any text within the limits below can ask for
_LONGEST = 64

_BITS = re.compile(r"([0-9]+(?:\.[0-9]+)?)([kKMGT]?)bps")
_BIT_PREFIXES = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "T": 12}

_DURATION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h|d))+")
_PART = re.compile(r"([0-9.]+)(ms|s|m|h|d)")
_MICROSECONDS = {
    "ms": 1_000,
    "s": 1_000_000,
    "m": 60_000_000,
    "h": 3_600_000_000,
    "d": 86_400_000_000,
}


def parse_quantity(value: str | float) -> Decimal:
    """Return the amount, exact to a billionth; less than that rounds away from zero.

    Binary amounts (Ki to Ei) stop at 2**63-1, as they do in Kubernetes.
    """
    return _parsed(str(value))


@lru_cache(maxsize=4096)  # thousands of machines share a handful of sizes
def _parsed(text: str) -> Decimal:
    match = _QUANTITY.fullmatch(text)
    if match is None or len(text) > _LONGEST:
        raise ValueError(f"{text[:_LONGEST]!r} is not a quantity; write 4, 500m, 1.5 or 8Gi")
    number, suffix, exponent = match.group("number", "suffix", "exponent")
    if suffix in _BINARY:
        amount = _EXACT.multiply(Decimal(number), Decimal(_BINARY[suffix]))
        largest = _LARGEST_BINARY.copy_sign(amount)
        amount = largest if abs(amount) > _LARGEST_BINARY else amount
    else:
        places = int(exponent) if exponent else _DECIMAL.get(suffix or "", 0)
        amount = _EXACT.scaleb(Decimal(number), places)
    return amount.quantize(_NANO, ROUND_UP, _EXACT).normalize(_EXACT)


@lru_cache(maxsize=4096)  # asked of every host for every machine that is placed
def mib(value: str | float) -> int:
    """Return how many whole MiB hold that many bytes."""
    amount = parse_quantity(value)
    if amount < 0:
        raise ValueError(f"{value} is below zero; a size cannot be")
    return -(-int(amount.to_integral_value(ROUND_CEILING)) // MIB)


def format_mib(amount_mib: int) -> str:
    """Return that many MiB in the largest unit that takes no fraction: 8Gi, 1536Mi."""
    if amount_mib < 0:
        raise ValueError(f"{amount_mib} MiB is below zero; a size cannot be")
    if amount_mib == 0:
        return "0"
    units = ["Mi", "Gi", "Ti", "Pi", "Ei"]
    while amount_mib % 1024 == 0 and len(units) > 1:
        amount_mib //= 1024
        units.pop(0)
    return f"{amount_mib}{units[0]}"


def parse_bandwidth(text: str) -> int:
    """Return bytes per second: of bits as networks have them (1Gbps), or of bytes (100Mi)."""
    if match := _BITS.fullmatch(text):
        bits = Decimal(match[1]).scaleb(_BIT_PREFIXES[match[2]])
        return max(1, int(bits / 8))
    amount = int(parse_quantity(text).to_integral_value(ROUND_CEILING))
    if amount <= 0:
        raise ValueError(f"{text} is no bandwidth; write 500Mbps, 1Gbps or 100Mi")
    return amount


def format_bytes(amount: int) -> str:
    """Return that many bytes in the largest unit that is not too large, to a tenth: 82.1Mi."""
    value, units = float(amount), ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.1f}".removesuffix(".0") + units[0]


def parse_duration(text: str) -> timedelta:
    """Return how long 500ms, 2s, 1h30m, 1.5h or 7d is; 0 needs no unit."""
    if text == "0":
        return timedelta(0)
    if len(text) > _LONGEST or not _DURATION.fullmatch(text):
        raise ValueError(f"{text[:_LONGEST]!r} is not a duration; write 500ms, 2s, 1h30m or 7d")
    parts = _PART.findall(text)
    microseconds = sum(Decimal(number) * _MICROSECONDS[unit] for number, unit in parts)
    try:
        return timedelta(microseconds=int(microseconds))
    except OverflowError:
        raise ValueError(f"{text!r} is longer than any duration can be") from None
