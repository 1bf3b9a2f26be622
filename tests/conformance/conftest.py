"""Finds the drivers under test and gives each test a fresh bench of one of them."""

from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path

import pytest

from conformance.under_test import Bench, DriverUnderTest, FullDriver

DRIVERS = [
    under_test
    for file in sorted((Path(__file__).parent / "drivers").glob("*.py"))
    for under_test in import_module(f"conformance.drivers.{file.stem}").UNDER_TEST
]


@pytest.fixture(params=[pytest.param(each, marks=each.marks, id=each.name) for each in DRIVERS])
def under_test(request: pytest.FixtureRequest) -> DriverUnderTest:
    """Every driver in every set-up, one after the other."""
    driver: DriverUnderTest = request.param
    if driver.needs:
        request.getfixturevalue(driver.needs)
    return driver


@pytest.fixture
async def bench(under_test: DriverUnderTest, tmp_path: Path) -> AsyncIterator[Bench]:
    """A host with nothing on it."""
    async with under_test.bench(tmp_path) as bench:
        yield bench


@pytest.fixture
async def driver(bench: Bench) -> FullDriver:
    """A connection to that host."""
    return bench.connect()
