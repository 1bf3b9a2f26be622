"""Finds the drivers under test and gives each test a fresh bench of one of them."""

import os
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from pathlib import Path

import pytest

from conformance.drivers.libvirt_far import credentials_kept
from conformance.under_test import Bench, DriverUnderTest, FullDriver
from novacron.localcluster.controlplane import ControlPlane

DRIVERS = [
    under_test
    for file in sorted((Path(__file__).parent / "drivers").glob("*.py"))
    for under_test in import_module(f"conformance.drivers.{file.stem}").UNDER_TEST
]


@pytest.fixture(scope="session")
def libvirt_credentials(control_plane: ControlPlane) -> Iterator[None]:
    """What lets the operator in to a far host, in a Secret."""
    if os.geteuid() != 0:
        pytest.skip("an ordinary user's hosts are near, all of them")
    with credentials_kept(control_plane):
        yield


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
