"""What a change of a running machine costs, before it is made: KubeVirt's rules in one table."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacron.core.change import Change, How, told, worst
from novacron.core.hardware import Hardware, Topology
from novacron.core.machine import FirstDisk, MachinePlan, Nic, Resources
from novacron.core.volume import Volume
from novacron.drivers.kubevirt.changes import changes
from novacron.drivers.kubevirt.convert import template
from novacron.drivers.kubevirt.settings import Settings
from unit.drivers.kubevirt.instances import instance_of
from unit.drivers.kubevirt.plans import plan

POD = Nic("", name="eth0", mac="02:00:00:00:00:01")
LAN = Nic("lan", name="eth1", mac="02:00:00:00:00:02")
STORE = Nic("store", name="eth2", mac="02:00:00:00:00:03")
DATA, LOGS = Volume("data", 10240, "fast"), Volume("logs", 1024, "fast")
BASE = plan(nics=(POD, LAN), volumes=(DATA,))
NEW = Settings()
OLD = Settings(live_update=False, volumes_pluggable=False, disks_expandable=False)
STUCK = {"conditions": [{"type": "LiveMigratable", "status": "False", "message": "RWO"}]}
PLUGGED = {"plugged": ("data",)}


def cpus(sockets: int, cores: int = 1, threads: int = 1) -> dict[str, Any]:
    return {"hardware": Hardware(topology=Topology(sockets, cores, threads))}


def memory(mib: int) -> dict[str, Any]:
    return {"resources": Resources(2, mib, 40960)}


def at_boot(mib: int, most: int | None = None) -> dict[str, Any]:
    return {"memory": {"guestAtBoot": f"{mib}Mi", "guestCurrent": "4Gi"}, "most": most}


def efi(**more: Any) -> dict[str, Any]:
    return {"hardware": Hardware(efi=True, **more)}


def order(*classes: str) -> dict[str, Any]:
    return {"hardware": Hardware(boot_order=classes)}


COSTS: dict[str, tuple[dict[str, Any], Settings, dict[str, Any], How]] = {
    "more cpus": (cpus(4), NEW, {}, How.MIGRATION),
    "four times the cpus": (cpus(8), NEW, {}, How.MIGRATION),
    "more than four times": (cpus(9), NEW, {}, How.RESTART),
    "more than was left room for": (cpus(4), NEW, {"sockets": 3}, How.RESTART),
    "fewer cpus": (cpus(1), NEW, {}, How.RESTART),
    "another topology": (cpus(1, 2, 2), NEW, {}, How.RESTART),
    "more cpus and cannot move": (cpus(4), NEW, STUCK, How.RESTART),
    "more cpus on an old cluster": (cpus(4), OLD, {}, How.RESTART),
    "more memory": (memory(8192), NEW, {}, How.MIGRATION),
    "less memory": (memory(2048), NEW, {}, How.RESTART),
    "back to what it was started with": (memory(2048), NEW, at_boot(2048, 8192), How.MIGRATION),
    "more memory than room": (memory(17 * 1024), NEW, {}, How.RESTART),
    "memory of odd size": (memory(4097), NEW, {}, How.RESTART),
    "memory of a small guest": (memory(8192), NEW, at_boot(512, 16384), How.RESTART),
    "more memory and cannot move": (memory(8192), NEW, STUCK, How.RESTART),
    "disk of another type": ({"volumes": (replace(DATA, bus="scsi"),)}, NEW, {}, How.RESTART),
    "one disk more": ({"volumes": (DATA, LOGS)}, NEW, {}, How.LIVE),
    "one disk more that cannot move": ({"volumes": (DATA, LOGS)}, NEW, STUCK, How.LIVE),
    "one sata disk more": (
        {"volumes": (DATA, replace(LOGS, bus="sata"))},
        NEW,
        {},
        How.RESTART,
    ),
    "one disk more on an old cluster": ({"volumes": (DATA, LOGS)}, OLD, {}, How.RESTART),
    "one disk less": ({"volumes": ()}, NEW, {}, How.RESTART),
    "one disk less that was plugged in": ({"volumes": ()}, NEW, PLUGGED, How.LIVE),
    "another disk to boot from": (
        {"first_disk": FirstDisk("data"), "volumes": (replace(DATA, name="root"),)},
        NEW,
        {},
        How.RESTART,
    ),
    "one interface more": ({"nics": (POD, LAN, STORE)}, NEW, {}, How.MIGRATION),
    "one in the middle": ({"nics": (POD, STORE, LAN)}, NEW, {}, How.RESTART),
    "one interface less": ({"nics": (POD,)}, NEW, {}, How.MIGRATION),
    "one interface more and cannot move": ({"nics": (POD, LAN, STORE)}, NEW, STUCK, How.RESTART),
    "one e1000 more": (
        {"nics": (POD, LAN, replace(STORE, model="e1000"))},
        NEW,
        {},
        How.RESTART,
    ),
    "no pod network": ({"nics": (LAN,)}, NEW, {}, How.RESTART),
    "another network": ({"nics": (POD, replace(LAN, network="x"))}, NEW, {}, How.RESTART),
    "another mac": (
        {"nics": (POD, replace(LAN, mac="52:54:00:00:00:01"))},
        NEW,
        {},
        How.RESTART,
    ),
    "firmware": (efi(), NEW, {}, How.RESTART),
    "boot order": (order("network", "disk"), NEW, {}, How.RESTART),
    "boot order as it was": (order("disk", "network"), NEW, {}, How.LIVE),
    "what a guest is told": ({"user_data": "#cloud-config\n"}, NEW, {}, How.RESTART),
}  # fmt: skip


def running(before: MachinePlan, facts: dict[str, Any]) -> dict[str, Any]:
    """An instance of the plan that the facts hold of."""
    told_of = {key: facts[key] for key in ("conditions", "memory") if facts.get(key)}
    instance = instance_of(before, **told_of)
    domain = instance["spec"]["domain"]
    if "sockets" in facts:
        domain["cpu"]["maxSockets"] = facts["sockets"]
    if facts.get("most"):
        domain["memory"]["maxGuest"] = f"{facts['most']}Mi"
    for volume in instance["spec"]["volumes"]:
        if volume["name"] in facts.get("plugged", ()):
            volume["persistentVolumeClaim"]["hotpluggable"] = True
    return instance


@pytest.mark.parametrize(("changed", "settings", "facts", "how"), COSTS.values(), ids=COSTS)
def test_the_cost_of_a_change_is_known_before_it_is_made(changed, settings, facts, how) -> None:
    """Nobody learns of a restart from an alarm."""
    wanted = template(replace(BASE, **changed))["spec"]
    found = changes(wanted, running(BASE, facts), settings)
    assert worst(found) is how
    if "as it was" not in str(changed):
        assert found or how is How.LIVE


def test_a_change_says_what_and_why_in_a_sentence() -> None:
    """What a condition tells."""
    wanted = template(replace(BASE, volumes=(DATA, LOGS), **cpus(1)))["spec"]
    found = changes(wanted, instance_of(BASE), NEW)
    assert [change.how for change in found] == [How.RESTART, How.LIVE]
    assert told(found) == (
        "2 to 1 CPUs by a restart, for CPUs cannot be taken from a running guest; "
        "disk logs more while it runs"
    )


def test_what_a_webhook_fills_in_is_no_change() -> None:
    """Or a restart would follow a restart."""
    instance = instance_of(BASE, currentCPUTopology={"sockets": 2, "cores": 1, "threads": 1})
    instance["spec"]["domain"]["cpu"]["model"] = "host-model"
    instance["spec"]["domain"]["memory"] = {"guest": "4096Mi", "maxGuest": "16Gi"}
    instance["spec"]["domain"]["features"] = {"acpi": {"enabled": True}}
    assert changes(template(BASE)["spec"], instance, NEW) == ()


def test_a_growing_guest_has_what_it_has_and_not_what_it_was_promised() -> None:
    """KubeVirt writes the new size into the instance long before the guest gets it."""
    wanted = replace(BASE, **cpus(4))
    instance = instance_of(wanted, currentCPUTopology={"sockets": 2, "cores": 1, "threads": 1})
    (change,) = changes(template(wanted)["spec"], instance, NEW)
    assert change == Change("the CPUs", "2 to 4 CPUs", How.MIGRATION)


def test_a_cluster_that_moves_nothing_by_itself_leaves_that_to_its_owner() -> None:
    """The change waits for a migration that somebody has to ask for."""
    wanted = template(replace(BASE, **cpus(4)))["spec"]
    (change,) = changes(wanted, instance_of(BASE), Settings(moves_by_itself=False))
    assert change.how is How.MIGRATION
    assert "ask" in change.why


volumes = st.lists(
    st.builds(
        Volume,
        st.sampled_from(["data", "logs", "a"]),
        st.integers(1, 100),
        st.just("fast"),
        bus=st.sampled_from([None, "virtio", "sata"]),
    ),
    unique_by=lambda volume: volume.name,
).map(tuple)
nics = st.lists(
    st.builds(
        Nic,
        st.sampled_from(["", "lan"]),
        name=st.sampled_from(["eth0", "eth1", "eth2"]),
        model=st.sampled_from([None, "virtio", "e1000"]),
    ),
    unique_by=lambda nic: nic.name,
).map(tuple)
plans = st.builds(
    lambda sockets, mib, disks, cards: replace(
        plan(nics=cards, volumes=disks), resources=Resources(sockets, mib, 1024)
    ),
    st.integers(1, 16),
    st.sampled_from([512, 1024, 2048, 4096]),
    volumes,
    nics,
)
settings = st.builds(Settings, st.booleans(), st.booleans(), st.booleans(), st.booleans())


@given(plans, settings)
def test_the_same_machine_is_no_change(same: MachinePlan, cluster: Settings) -> None:
    """Whatever it is made of."""
    assert changes(template(same)["spec"], instance_of(same), cluster) == ()


@given(plans, plans, settings)
def test_a_cluster_that_can_do_less_never_makes_a_change_cheaper(
    old: MachinePlan, new: MachinePlan, cluster: Settings
) -> None:
    """What needs a restart where all is possible needs one everywhere."""
    wanted, instance = template(new)["spec"], instance_of(old)
    best = worst(changes(wanted, instance, NEW))
    assert worst(changes(wanted, instance, cluster)) >= best


@given(plans)
def test_no_two_devices_share_a_place_in_the_boot_order(any_plan: MachinePlan) -> None:
    """KubeVirt refuses the whole machine otherwise, and a place of 0 too."""
    devices = template(any_plan)["spec"]["domain"]["devices"]
    entries = (*devices["disks"], *devices["interfaces"])
    places = [each["bootOrder"] for each in entries if "bootOrder" in each]
    assert len(set(places)) == len(places)
    assert all(place >= 1 for place in places)
