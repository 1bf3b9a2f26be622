"""What a guest is told of volumes that grow while it runs: once it knows, and not before."""

from dataclasses import replace

import pytest

from novacron.core.errors import Busy
from novacron.core.machine import Power
from novacron.core.volume import Volume
from novacron.drivers.libvirt import LibvirtDriver, defined, volume_plugging
from unit.drivers.libvirt.hosts import created, deleted, machine


async def test_a_guest_is_told_of_a_larger_volume_although_somebody_died_before_he_told_it(
    driver: LibvirtDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or its file system would stay as it was until the volume grows once more."""
    told: list[str] = []

    def tell(_: object, serial: str) -> None:
        told.append(serial)
        if len(told) == 1:
            raise Busy("it ends here")

    monkeypatch.setattr(volume_plugging, "grow_file_systems", tell)
    monkeypatch.setattr(defined, "_is_agent_there", lambda _: True)
    small, other = Volume("data", 64), Volume("other", 64)
    plan = replace(machine(), volumes=(small, other))
    await created(driver, plan)
    await driver.set_power(plan.ref, Power.ON)
    larger = replace(plan, volumes=(replace(small, size_mib=96), other))
    with pytest.raises(Busy, match="it ends here"):
        await driver.resize(larger)
    seen = await driver.observe(plan.ref)
    assert seen is not None
    assert seen.volumes[0].size_mib == 64, "so the order is given again"
    await driver.resize(larger)
    assert told == ["data", "data"], "not of the other, which is as it was"
    seen = await driver.observe(plan.ref)
    assert seen is not None
    assert seen.volumes[0].size_mib == 96
    await driver.resize(larger)
    assert told == ["data", "data"], "nor again once that is written down"
    await deleted(driver, plan)
