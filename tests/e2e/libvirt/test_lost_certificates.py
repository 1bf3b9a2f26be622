"""Hosts that say they have certificates for QEMU, and have none that it could use."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from e2e.libvirt.moving import FleetStage, result
from machines import condition
from novacron.localcluster.hypervisor import Hypervisor
from rights import ROOT

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not ROOT, reason="hosts of their own need root"),
]

# Which host lacks which file, and what QEMU or libvirt says then; a source without a certificate
# of its own is only turned away by the other host, which is told in two ways.
LOST = [
    ("shared", 0, "ca-cert.pem", "Unable to access credentials"),
    ("shared", 0, "client-cert.pem", "Cannot write to TLS channel"),
    ("novacron", 0, "client-cert.pem", "Cannot read from TLS channel"),
    ("shared", 1, "server-cert.pem", "Unable to access credentials"),
]


@contextmanager
def hidden(host: Hypervisor, file: str) -> Iterator[None]:
    """Take a file away from QEMU: what libvirtd itself needs of them it has read at its start."""
    there = host.directory / "etc/libvirt/fleet" / file
    away = there.with_suffix(".away")
    there.rename(away)
    try:
        yield
    finally:
        away.rename(there)


@pytest.mark.parametrize(("stage", "number", "file", "says"), LOST, indirect=["stage"])
def test_a_machine_stays_while_a_host_has_no_certificates_though_it_says_so(
    stage: FleetStage, number: int, file: str, says: str
) -> None:
    """Nobody knows before QEMU is asked. The guest goes on, and is not sent in the clear instead.

    Once that is mended it moves.
    """
    obj = stage.run("trusting", policy={"encrypted": True})
    assert condition(obj, "LiveMigratable")["status"] == "True"
    before = stage.tick(obj, 0)
    with hidden(stage.fleet.hosts[number], file):
        stage.ask("trusting", migrate_to=stage.hosts[1])
        done = stage.moved("trusting")
    migration = done["status"]["migration"]
    assert (migration["result"], migration["reason"]) == ("Failed", "NoCertificates"), migration
    assert says in migration["message"]
    assert done["status"]["nodeName"] == stage.hosts[0]
    assert stage.guests(obj) == [0]
    assert stage.tick(obj, 0) > before
    stage.ask("trusting", migrate_to=stage.hosts[1])
    stage.scene.until("trusting", lambda obj: result(obj) == "Succeeded")
    assert stage.guests(obj) == [1]
