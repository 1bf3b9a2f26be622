"""How much a Kubernetes quantity is; only to compare two of them."""

from fractions import Fraction

__all__ = ["amount"]

BINARY = {f"{prefix}i": 1024**power for power, prefix in enumerate("KMGTPE", start=1)}
DECIMAL = {prefix: 1000**power for power, prefix in enumerate("kMGTPE", start=1)}
SUFFIXES: dict[str, Fraction | int] = {**BINARY, **DECIMAL, "m": Fraction(1, 1000)}


def amount(quantity: str) -> Fraction:
    """Return the number that the text stands for."""
    text = str(quantity)
    for suffix, factor in SUFFIXES.items():
        if text.endswith(suffix):
            return Fraction(text.removesuffix(suffix)) * factor
    return Fraction(text)
