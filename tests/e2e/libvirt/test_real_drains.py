"""A real host is left by its guests one after the other, but for who would not be welcome."""

import libvirt
import pytest

from e2e.libvirt.moving import FleetStage
from e2e.test_moves import near, novacron, reason, required
from machines import Object, condition
from operators import eventually
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
]

TWINS = {"group": "twins"}
APART = {"podAntiAffinity": required(near("twins"))}
# Slow enough to be seen at it, and fast enough to be over soon.
SLOWLY = {"bandwidth": "160Mbps", "compression": False}


def leaving(stage: FleetStage, guests: list[Object]) -> int:
    """Return how many guests the first host sends at this moment, as libvirt itself says."""
    connection = libvirt.open(stage.fleet.hosts[0].uri)
    count = 0
    for domain in connection.listAllDomains(libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE):
        if domain.UUIDString() in {each["metadata"]["uid"] for each in guests}:
            sent = libvirt.VIR_DOMAIN_JOB_OPERATION_MIGRATION_OUT
            try:
                count += domain.jobStats().get("operation") == sent
            except libvirt.libvirtError:
                continue  # it has just left
    connection.close()
    return count


def test_guests_leave_as_few_at_a_time_as_was_asked_and_nobody_joins_whom_it_must_not(
    shared: FleetStage,
) -> None:
    """They count on; who stays says why, the host says how many do, and uncordon ends it."""
    here = shared.hosts[0]
    shared.run("other-twin", number=1, labels=TWINS)
    twin = shared.run("twin", labels=TWINS, affinity=APART)
    guests = [shared.run(f"guest-{number}", policy=SLOWLY) for number in range(2)]
    before = [shared.tick(each, 0) for each in guests]
    shared.scene.api.patch_host(here, {"spec": {"drain": {"atOnce": 1}}})
    at_once = set[int]()

    def gone() -> bool:
        at_once.add(leaving(shared, guests))
        return all(shared.guests(each) == [1] for each in guests)

    eventually(gone, lambda: f"both have left: {shared.scene.operator.log}")
    assert at_once == {0, 1}
    for each, then in zip(guests, before, strict=True):
        assert then < shared.tick(each, 1) < then + 120
    stays = shared.scene.until("twin", lambda obj: reason(obj) == "NoHostFits")
    assert "machines with group=twins" in stays["status"]["migration"]["message"]
    waits = shared.scene.until_host(
        here,
        lambda obj: (
            condition(obj, "Drained").get("message") == "1 machine is left, which stays for now"
        ),
    )
    assert condition(waits, "Drained")["status"] == "False"
    assert shared.guests(twin) == [0]
    novacron(shared.scene, "host", "uncordon", here, namespaced=False)
    back = shared.scene.until_host(here, lambda obj: not condition(obj, "Drained"))
    assert "drain" not in back["spec"]
    shared.ask("guest-0", migrate_to=here)
    shared.scene.until("guest-0", lambda obj: obj["status"]["nodeName"] == here)
