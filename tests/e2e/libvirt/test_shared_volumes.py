"""A volume that two real guests on two hosts write at the same time."""

from collections.abc import Iterator

import libvirt
import pytest

from api import Api
from e2e.libvirt.moving import FleetStage, fleet_stage
from inside_guest import agent_answers, inside
from novacron.localcluster.hypervisor import Fleet
from operators import RunningOperator, eventually
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
]

TEAM = {"name": "team", "pool": "shared", "shared": True}
SHARED = {"name": "board", "size": "16Mi", "storageClass": "team", "accessMode": "ReadWriteMany"}
DISK = "/dev/vdc"


@pytest.fixture
def stage(libvirt_operator: RunningOperator, api: Api, fleet: Fleet) -> Iterator[FleetStage]:
    """Two hosts with disks of their own and one place for volumes of a team."""
    with fleet_stage(libvirt_operator, api, fleet, "novacron", TEAM) as found:
        yield found


def write(domain: libvirt.virDomain, sector: int, text: str) -> None:
    """Have a guest write a word to a place on the disk, past its own memory."""
    word = f"echo {text} | dd of={DISK} bs=512 seek={sector} conv=sync,notrunc oflag=direct"
    assert inside(domain, f"{word} 2>/dev/null && echo done") == "done"


def read(domain: libvirt.virDomain, sector: int) -> str:
    """Have a guest read the word that is there, past its own memory."""
    line = f"dd if={DISK} bs=512 skip={sector} count=1 iflag=direct 2>/dev/null | tr -d '\\0'"
    return inside(domain, line)


def test_two_guests_on_two_hosts_see_what_the_other_wrote(stage: FleetStage) -> None:
    """Each at once, and neither loses what it wrote itself; the volume goes with its owner."""
    first = stage.run("first", volumes=[{**SHARED, "reclaimPolicy": "Delete"}])
    (volume,) = first["status"]["volumes"]
    second = stage.run("second", number=1, volumes=[{**SHARED, "existing": volume["id"]}])
    assert (stage.guests(first), stage.guests(second)) == ([0], [1])
    with stage.domain(first, 0) as one, stage.domain(second, 1) as other:
        for domain in (one, other):
            eventually(lambda domain=domain: agent_answers(domain), lambda: "its agent answers")
        write(one, 0, "from-the-first")
        assert read(other, 0) == "from-the-first"
        write(other, 8, "from-the-second")
        assert read(one, 8) == "from-the-second"
        write(other, 0, "written-over")
        assert [read(each, 0) for each in (one, other)] == ["written-over"] * 2
        assert [read(each, 8) for each in (one, other)] == ["from-the-second"] * 2
    for name in ("second", "first"):
        stage.scene.api.delete_machine(stage.scene.namespace, name)
        stage.scene.until_gone(name)
