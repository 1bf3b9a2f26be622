"""How real guests travel: encrypted or not, no faster than they may, until somebody says no."""

import json
import subprocess
from dataclasses import dataclass
from datetime import datetime

import libvirt
import libvirt_qemu
import pytest

from api import Api
from e2e.conftest import Stage
from e2e.libvirt.moving import SLOW, FleetStage, result
from inside_guest import agent_answers, inside
from machines import condition
from novacron.localcluster.hypervisor import Fleet, Hypervisor
from operators import RunningOperator, eventually
from rights import ROOT

pytestmark = pytest.mark.skipif(not ROOT, reason="hosts of their own need root")

BYTES_A_SECOND = 10_000_000
MIB = 1024 * 1024


@dataclass(frozen=True)
class Way:
    """How QEMU itself says that it sends a guest."""

    capabilities: frozenset[str]
    encrypted: bool
    bandwidth: int

    @classmethod
    def of(cls, domain: libvirt.virDomain) -> "Way":
        """Ask the QEMU of a guest that is under way."""
        able, how = (
            json.loads(libvirt_qemu.qemuMonitorCommand(domain, json.dumps({"execute": asked}), 0))
            for asked in ("query-migrate-capabilities", "query-migrate-parameters")
        )
        return cls(
            frozenset(each["capability"] for each in able["return"] if each["state"]),
            bool(how["return"].get("tls-creds")),
            how["return"]["max-bandwidth"],
        )


@pytest.mark.full
def test_a_guest_travels_encrypted_and_no_faster_than_allowed(shared: FleetStage) -> None:
    """QEMU's own encryption, with the certificates that the hosts have."""
    policy = {"encrypted": True, "bandwidth": "80Mbps", "compression": True}
    obj = shared.run("secret", policy=policy)
    before = shared.tick(obj, 0)
    shared.ask("secret", migrate_to=shared.hosts[1])
    shared.under_way("secret")
    with shared.domain(obj, 0) as domain:
        way = Way.of(domain)
    assert way.encrypted
    assert way.capabilities >= {"xbzrle", "auto-converge"}
    assert way.bandwidth == BYTES_A_SECOND // MIB * MIB
    done = shared.moved("secret")
    migration = done["status"]["migration"]
    assert migration["result"] == "Succeeded", migration
    begun, ended = (datetime.fromisoformat(migration[at]) for at in ("startTime", "endTime"))
    least = migration["transferredBytes"] / BYTES_A_SECOND
    assert least > 2, "enough to tell"
    # Both are whole seconds.
    assert (ended - begun).total_seconds() + 1 >= least
    assert shared.tick(done, 1) > before


@dataclass(frozen=True)
class Copy:
    """How QEMU itself says that it copies disks, and where to."""

    address: str
    speeds: tuple[int, ...]

    @classmethod
    def of(cls, domain: libvirt.virDomain) -> "Copy":
        """Ask the QEMU of a guest whose disks are being copied, to one place."""
        jobs, nodes = (
            json.loads(libvirt_qemu.qemuMonitorCommand(domain, json.dumps({"execute": asked}), 0))
            for asked in ("query-block-jobs", "query-named-block-nodes")
        )
        speeds = tuple(each["speed"] for each in jobs["return"] if each["type"] == "mirror")
        address = next(each["file"] for each in nodes["return"] if each["drv"] == "nbd")
        return cls(address, speeds)

    def told_to_anybody(self, host: Hypervisor) -> str:
        """Return what somebody on a host is told who asks for the disk without a certificate."""
        within = ["ip", "netns", "exec", host.namespace or ""]
        asked = [*within, "qemu-img", "info", self.address]
        done = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout + done.stderr


@pytest.mark.full
def test_disks_that_are_copied_travel_encrypted_too(apart: FleetStage) -> None:
    """Where they come in nobody is heard who does not encrypt, so nothing came in the clear."""
    obj = apart.run("sealed", policy={"encrypted": True, "bandwidth": "80Mbps"})
    before = apart.tick(obj, 0)
    apart.ask("sealed", migrate_to=apart.hosts[1])
    apart.under_way("sealed")
    with apart.domain(obj, 0) as domain:
        way, copy = Way.of(domain), Copy.of(domain)
        told = copy.told_to_anybody(apart.fleet.hosts[0])
        assert Copy.of(domain) == copy, "it was asked while the disk was on its way"
    assert way.encrypted
    assert (way.bandwidth,) == copy.speeds == (BYTES_A_SECOND // MIB * MIB,)
    assert "TLS negotiation required" in told
    done = apart.moved("sealed")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    assert done["status"]["migration"]["transferredBytes"] > 256 * MIB, "its disk is in it too"
    assert before < apart.tick(done, 1) < before + 180
    assert apart.guests(done) == [1]


@pytest.mark.full
def test_disks_that_are_copied_at_once_share_the_bandwidth(apart: FleetStage) -> None:
    """libvirt would give all of it to each; memory has all of it, as it comes after them."""
    data = {"name": "data", "size": "128Mi", "reclaimPolicy": "Delete"}
    obj = apart.run("burdened", policy={"bandwidth": "320Mbps"}, volumes=[data])
    before, allowed = apart.tick(obj, 0), 4 * BYTES_A_SECOND
    with apart.domain(obj, 0) as domain:
        eventually(lambda: agent_answers(domain), lambda: "its agent answers")
        inside(domain, "dd if=/dev/urandom of=/dev/vdc bs=1M count=64 conv=fsync")
    apart.ask("burdened", migrate_to=apart.hosts[1])
    apart.under_way("burdened")
    with apart.domain(obj, 0) as domain:
        assert Copy.of(domain).speeds == (allowed // MIB // 2 * MIB,) * 2
        eventually(
            lambda: Way.of(domain).bandwidth == allowed // MIB * MIB,
            lambda: f"memory may have all of it: {Way.of(domain)}",
        )
        assert sum(Copy.of(domain).speeds) <= allowed
    done = apart.moved("burdened")
    assert done["status"]["migration"]["result"] == "Succeeded", done["status"]["migration"]
    assert apart.tick(done, 1) > before


@pytest.mark.full
def test_a_machine_with_more_disks_than_bandwidth_stays(apart: FleetStage) -> None:
    """Rather than that it travels faster than it may."""
    data = {"name": "data", "size": "16Mi", "reclaimPolicy": "Delete"}
    obj = apart.run("patient", policy={"bandwidth": "1Mi"}, volumes=[data])
    apart.ask("patient", migrate_to=apart.hosts[1])
    migration = apart.moved("patient")["status"]["migration"]
    assert (migration["result"], migration["reason"]) == ("Failed", "BandwidthTooLow")
    assert "a bandwidth of 2Mi or more" in migration["message"]
    assert apart.guests(obj) == [0]


@pytest.mark.full
def test_a_move_is_cancelled_and_the_guest_goes_on(apart: FleetStage) -> None:
    """Where it was; nothing is left where it did not go."""
    obj = apart.run("stays", policy=SLOW)
    before = apart.tick(obj, 0)
    apart.ask("stays", migrate_to=apart.hosts[1])
    first = apart.under_way("stays", percent=1)["status"]["migration"]
    with apart.domain(obj, 0) as domain:
        way = Way.of(domain)
        told = Copy.of(domain).told_to_anybody(apart.fleet.hosts[0])
    assert not way.encrypted
    assert "virtual size: 256 MiB" in told, "nobody asked for encryption"
    assert "xbzrle" not in way.capabilities
    assert "auto-converge" in way.capabilities
    assert 0 < first["progress"] < 100
    more = first["transferredBytes"] + 1
    apart.scene.until(
        "stays", lambda obj: obj["status"]["migration"].get("transferredBytes", 0) >= more
    )
    apart.ask("stays", migrate_cancel="true")
    done = apart.moved("stays")
    assert done["status"]["migration"]["result"] == "Cancelled"
    assert apart.tick(done, 0) > before
    assert apart.guests(done) == [0]


@pytest.mark.full
def test_without_certificates_nothing_travels(
    libvirt_operator: RunningOperator, api: Api, fleet: Fleet
) -> None:
    """A machine that is to travel encrypted is not sent in the clear."""
    scene = Stage(api, libvirt_operator, libvirt_operator.namespaces[0], [])
    stage = FleetStage.declared(scene, fleet, "shared", tls=False)
    obj = stage.run("careful", policy={"encrypted": True})
    assert condition(obj, "LiveMigratable")["reason"] == "NoCertificates"
    stage.ask("careful", migrate_to=stage.hosts[1])
    done = stage.moved("careful")
    assert done["status"]["migration"]["reason"] == "NoCertificates"
    assert "spec.libvirt.migration.tls" in done["status"]["migration"]["message"]
    assert stage.guests(obj) == [0]
    scene.clear()


@pytest.mark.full
def test_a_drained_host_is_left_by_guests_that_run_and_by_those_that_do_not(
    shared: FleetStage,
) -> None:
    """A stopped one is moved without ever running, and a running one no faster than it may."""
    running, off = shared.run("running", policy={"bandwidth": "160Mbps"}), shared.run("off")
    before = shared.tick(running, 0)
    shared.scene.api.patch_machine(shared.scene.namespace, "off", {"spec": {"running": False}})
    shared.scene.until("off", lambda obj: obj["status"]["phase"] == "Stopped")
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"drain": {}}})
    shared.under_way("running")
    with shared.domain(running, 0) as domain:
        assert Way.of(domain).bandwidth == 2 * BYTES_A_SECOND // MIB * MIB
    shared.scene.until_host(
        shared.hosts[0], lambda obj: condition(obj, "Drained").get("status") == "True"
    )
    assert shared.tick(running, 1) > before
    stopped = shared.scene.until("off", lambda obj: result(obj) == "Succeeded")
    assert stopped["status"]["nodeName"] == shared.hosts[1]
    assert shared.guests(off) == []
    shared.scene.api.patch_machine(shared.scene.namespace, "off", {"spec": {"running": True}})
    shared.scene.until_running("off")
    assert shared.tick(off, 1) >= 1
    shared.scene.api.patch_host(shared.hosts[0], {"spec": {"drain": None}})
