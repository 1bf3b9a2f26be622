"""Since when a host is silent, which is what machines wait for that may begin anew elsewhere."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from novacron.app.registry import HOST_KIND
from novacron.core.errors import Rejected, Unreachable
from novacron.core.host import HostFacts
from novacron.runtime.resource import Key
from unit.controllers.office import Office

FENCED = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}


class Troubled:
    """A driver of a host that has something the matter with it, or is silent."""

    capabilities: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.trouble: Exception = Rejected("its pool is gone", reason="PoolUnusable")

    async def hosts(self) -> AsyncIterator[HostFacts]:
        """Tell what the trouble is."""
        raise self.trouble
        yield


async def test_a_host_is_silent_only_since_it_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was in trouble before, with guests that ran, so the time of grace begins anew."""
    office, driver = Office(), Troubled()
    office.add_host("a", taints=[FENCED])
    monkeypatch.setattr(type(office.host_controller.drivers), "named", lambda *_: driver)
    await office.host_controller.reconcile(Key("", "a"))
    office.now += timedelta(hours=1)
    driver.trouble = Unreachable("nobody answers")
    await office.host_controller.reconcile(Key("", "a"))
    silent_since = office.now
    assert HOST_KIND.host(office.host("a")).down_since == silent_since
    office.now += timedelta(seconds=20)
    await office.host_controller.reconcile(Key("", "a"))
    assert HOST_KIND.host(office.host("a")).down_since == silent_since
