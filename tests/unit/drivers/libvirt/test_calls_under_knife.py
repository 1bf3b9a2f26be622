"""The knife of the crash tests cuts at whatever the driver may change at libvirt."""

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import libvirt
import libvirt_qemu
import pytest

import novacron.drivers.libvirt
from crash.libvirt_calls import ONLY_READ, SPARED, calls_to_cut

# A host that libvirt only plays, in this process.
PLAYED = "test:///default"
POOL, DOMAIN = "default-pool", "test"
VOLUME = "<volume><name>looked-at</name><capacity>1024</capacity></volume>"
SNAPSHOT = "<domainsnapshot><name>looked-at</name></domainsnapshot>"
SAMPLES = {"str": "x", "int": 0, "list[str]": ["<cpu/>"]}


def of_the_driver() -> set[str]:
    """Return the names of all that the driver's sources ask anything for."""
    [directory] = novacron.drivers.libvirt.__path__
    trees = (ast.parse(file.read_text()) for file in Path(directory).glob("*.py"))
    every = (node for tree in trees for node in ast.walk(tree))
    return {node.attr for node in every if isinstance(node, ast.Attribute)}


@pytest.fixture
def played() -> Iterator[dict[str, Any]]:
    """Something of each kind that the driver deals with, by somebody who may only look."""
    writing, looking = libvirt.open(PLAYED), libvirt.openReadOnly(PLAYED)
    writing.storagePoolLookupByName(POOL).createXML(VOLUME)
    writing.lookupByName(DOMAIN).snapshotCreateXML(SNAPSHOT)
    pool, domain = looking.storagePoolLookupByName(POOL), looking.lookupByName(DOMAIN)
    yield {
        "virConnect": looking,
        "virDomain": domain,
        "virDomainSnapshot": domain.snapshotLookupByName("looked-at"),
        "virNetwork": looking.networkLookupByName("default"),
        "virNodeDevice": looking.listAllDevices()[0],
        "virStoragePool": pool,
        "virStorageVol": pool.storageVolLookupByName("looked-at"),
    }
    writing.storagePoolLookupByName(POOL).storageVolLookupByName("looked-at").delete()
    writing.lookupByName(DOMAIN).snapshotLookupByName("looked-at").delete()
    looking.close()
    writing.close()


def is_refused(owner: Any, name: str) -> bool:
    """Say whether libvirt refuses a call because its caller may only look."""
    call = getattr(owner, name)
    needed = [
        SAMPLES[str(each.annotation).strip("'")]
        for each in inspect.signature(call).parameters.values()
        if each.default is each.empty
    ]
    try:
        call(*needed)
    except libvirt.libvirtError as error:
        return bool(error.get_error_code() == libvirt.VIR_ERR_OPERATION_DENIED)
    return False


@pytest.mark.parametrize("name", sorted(ONLY_READ))
def test_what_only_reads_is_allowed_to_whoever_may_only_look(
    played: dict[str, Any], name: str
) -> None:
    """libvirt itself says what is a change."""
    owners = [owner for owner in played.values() if hasattr(owner, name)]
    assert owners
    assert not [type(owner) for owner in owners if is_refused(owner, name)]


def test_whoever_may_only_look_is_refused_a_change(played: dict[str, Any]) -> None:
    """Otherwise the test above says nothing."""
    assert is_refused(played["virDomain"], "fsFreeze")
    assert is_refused(played["virStorageVol"], "delete")


def test_only_calls_that_the_driver_makes_are_spared() -> None:
    """Each is named once there is one, so that somebody thinks about it."""
    assert ONLY_READ | SPARED.keys() <= of_the_driver()
    assert not ONLY_READ & SPARED.keys()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (libvirt.virDomain, "fsFreeze"),
        (libvirt.virDomain, "fsThaw"),
        (libvirt.virDomain, "resume"),
        (libvirt.virDomain, "migrateSetMaxSpeed"),
        (libvirt.virStoragePool, "destroy"),
        (libvirt_qemu, "qemuAgentCommand"),
        # The driver makes none of these so far.
        (libvirt.virDomain, "suspend"),
        (libvirt.virStoragePool, "undefine"),
        (libvirt.virSecret, "setValue"),
        (libvirt_qemu, "qemuAttach"),
    ],
    ids=lambda each: each if isinstance(each, str) else each.__name__,
)
def test_whatever_changes_something_is_cut_at_before_the_driver_does_it(
    owner: object, name: str
) -> None:
    """Nobody has to think of the knife who makes another call."""
    assert (owner, name) in set(calls_to_cut())
