"""Quantities are read as Kubernetes reads them, durations as people write them."""

from datetime import timedelta
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacron.core.quantity import (
    format_mib,
    mib,
    parse_bandwidth,
    parse_duration,
    parse_quantity,
)

BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}

# Right-hand sides were printed by k8s.io/apimachinery v0.34.4 (resource.ParseQuantity, AsDec).
AS_GO_SAYS = {
    "0": "0",
    "4": "4",
    "+4": "4",
    "-1Gi": "-1073741824",
    "8Gi": "8589934592",
    "5.2Gi": "5583457484.8",
    "1.": "1",
    ".5": "0.5",
    "1.G": "1000000000",
    "100m": "0.1",
    "1500m": "1.5",
    "1u": "0.000001",
    "1n": "0.000000001",
    "1e3": "1000",
    "1E3": "1000",
    "12e-2": "0.12",
    "1e+2": "100",
    "1E": "1000000000000000000",
    "1Ei": "1152921504606846976",
    "9Ei": "9223372036854775807",
    "-9Ei": "-9223372036854775807",
    "10E": "10000000000000000000",
    "0.1n": "0.000000001",
    "-0.1n": "-0.000000001",
    "1.0000000001": "1.000000001",
    "007": "7",
}

NONSENSE = [
    "",
    " ",
    "Gi",
    "+",
    ".",
    "abc",
    "1GB",
    "1K",
    "1ki",
    "1 Gi",
    " 1",
    "1Gi ",
    "1.2.3",
    "--1",
]
NONSENSE += ["1e", "1e1.5", "0x10", "1_000", "NaN", "inf", "True", "None", "٣", "1e9999", "1" * 65]


@pytest.mark.parametrize(("text", "value"), AS_GO_SAYS.items())
def test_quantities_mean_what_kubernetes_says(text, value) -> None:
    """The scheduler must not count a machine larger or smaller than the API server does."""
    assert parse_quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", NONSENSE)
def test_nonsense_is_refused_in_words(text) -> None:
    """A user who mistypes a size learns how sizes are written."""
    with pytest.raises(ValueError, match="is not a quantity; write"):
        parse_quantity(text)


@pytest.mark.parametrize(
    ("number", "value"), [(4, "4"), (1.5, "1.5"), (1e22, "1e22"), (0.1, "0.1")]
)
def test_numbers_are_quantities_too(number, value) -> None:
    """JSON numbers reach us as they are."""
    assert parse_quantity(number) == Decimal(value)


@pytest.mark.parametrize("number", [float("nan"), float("inf"), True])
def test_numbers_that_are_no_amounts_are_refused(number) -> None:
    """Python calls them numbers; Kubernetes does not."""
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(number)


@given(st.integers(-(10**6), 10**6), st.sampled_from([*DECIMAL, *BINARY]))
def test_a_suffix_multiplies(number, suffix) -> None:
    """Whatever the number, the suffix means one factor; binary amounts stop at 2**63-1."""
    if suffix in BINARY:
        expected = Fraction(max(min(number * BINARY[suffix], 2**63 - 1), -(2**63 - 1)))
    else:
        expected = number * Fraction(10) ** DECIMAL[suffix]
    assert Fraction(parse_quantity(f"{number}{suffix}")) == expected


@given(st.integers(0, 2**40))
def test_sizes_survive_being_written_and_read(amount) -> None:
    """Reservations are kept in status as text and read back after a restart."""
    assert mib(format_mib(amount)) == amount


@given(st.integers(0, 2**62))
def test_bytes_are_rounded_up_to_whole_mebibytes(size_bytes) -> None:
    """A machine never gets less than it asked for, and less than one MiB more."""
    assert 0 <= mib(size_bytes) * 2**20 - size_bytes < 2**20


@pytest.mark.parametrize(
    ("text", "amount"), [("0", 0), ("1", 1), ("512Mi", 512), ("1.5Gi", 1536), ("1G", 954)]
)
def test_sizes_in_mebibytes(text, amount) -> None:
    """The core counts in MiB."""
    assert mib(text) == amount


@pytest.mark.parametrize(
    ("amount", "text"),
    [(0, "0"), (1, "1Mi"), (1536, "1536Mi"), (8192, "8Gi"), (2**20, "1Ti"), (2**50, "1024Ei")],
)
def test_sizes_are_written_in_the_largest_whole_unit(amount, text) -> None:
    """The form that people write themselves."""
    assert format_mib(amount) == text


def test_sizes_below_zero_are_refused() -> None:
    """Nothing has less than no room."""
    with pytest.raises(ValueError, match="below zero"):
        mib("-1Gi")
    with pytest.raises(ValueError, match="below zero"):
        format_mib(-1)


@pytest.mark.parametrize(
    ("text", "bytes_a_second"),
    [
        ("1Gbps", 125_000_000),
        ("500Mbps", 62_500_000),
        ("1.5Gbps", 187_500_000),
        ("8.4Mbps", 1_050_000),
        ("1Tbps", 125_000_000_000),
        ("64Kbps", 8_000),
        ("64kbps", 8_000),
        ("8000bps", 1_000),
        ("12bps", 1),
        ("7bps", 1),
        ("100Mi", 104_857_600),
        ("100M", 100_000_000),
        ("1048576", 1_048_576),
        ("0.5", 1),
    ],
)
def test_bandwidth_is_counted_in_bytes(text, bytes_a_second) -> None:
    """Networks are sold in bits and thousands; an eighth or a thousandth off is soon noticed."""
    assert parse_bandwidth(text) == bytes_a_second


@pytest.mark.parametrize(
    "text",
    [
        "",
        "fast",
        "0",
        "-1Mi",
        "1 Gbps",
        "-1Gbps",
        "1.Gbps",
        "Gbps",
        "1gbps",
        "1Gibps",
        "1Gb",
        "٣bps",
    ],
)
def test_nonsense_is_no_bandwidth(text) -> None:
    """Without a bandwidth there is no limit, so none that cannot be read is to pass for that."""
    with pytest.raises(ValueError, match=r"is (no bandwidth|not a quantity); write"):
        parse_bandwidth(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", timedelta(0)),
        ("0s", timedelta(0)),
        ("500ms", timedelta(milliseconds=500)),
        ("2s", timedelta(seconds=2)),
        ("1.5h", timedelta(minutes=90)),
        ("1h30m", timedelta(minutes=90)),
        ("7d", timedelta(days=7)),
        ("0.0005ms", timedelta(0)),
    ],
)
def test_durations(text, expected) -> None:
    """Go's notation, and days besides."""
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text", ["", "5", "1x", "s", "-1s", "1h 30m", "1.s", "1,5s", "٣s", "1" * 65]
)
def test_nonsense_is_no_duration(text) -> None:
    """A setting that cannot be read stops the program with a sentence, not later."""
    with pytest.raises(ValueError, match="is not a duration; write"):
        parse_duration(text)


def test_a_duration_beyond_measure_is_refused() -> None:
    """Python's own limit becomes an ordinary refusal."""
    with pytest.raises(ValueError, match="longer than any"):
        parse_duration("9999999999d")


@given(st.integers(0, 10**15))
def test_milliseconds_survive_being_written_and_read(count) -> None:
    """No float stands between the text and the duration."""
    assert parse_duration(f"{count}ms") == timedelta(milliseconds=count)
