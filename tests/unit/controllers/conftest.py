"""What several tests of controllers begin with."""

from pathlib import Path

import pytest

from unit.controllers.pair import Hosts


@pytest.fixture
async def hosts(tmp_path: Path) -> Hosts:
    """A machine that runs on host a."""
    hosts = Hosts(tmp_path)
    await hosts.settle()
    return hosts
