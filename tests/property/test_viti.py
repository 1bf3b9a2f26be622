"""Machines of any size, with any disks and interfaces: what must hold for all of them."""

from email import message_from_bytes
from typing import Any

from hypothesis import assume, example, given
from hypothesis import strategies as st

from novacron.core.multi_part import joined as joined_texts
from novacron.families.viti.mac import stable_mac
from novacron.families.viti.resolve import resolve
from novacron.families.viti.templates import BUILT_IN
from novacron.families.viti.values import Resolved

names = st.sampled_from(["root", "data", "logs", "a", "b"])
disks = st.lists(
    st.fixed_dictionaries(
        {"name": names, "sizeGB": st.integers(1, 100)},
        optional={"boot": st.just(value=False), "type": st.sampled_from(["virtio", "sata"])},
    ),
    unique_by=lambda disk: disk["name"],
)
nics = st.lists(
    st.fixed_dictionaries(
        {"name": names, "networkName": names},
        optional={"model": st.sampled_from(["virtio", "e1000"])},
    ),
    unique_by=lambda nic: nic["name"],
)
orders = st.lists(st.sampled_from(["disk", "network", "cdrom"]), unique=True)
specs = st.fixed_dictionaries(
    {"template": st.sampled_from(sorted(BUILT_IN)), "disks": disks, "networks": nics},
    optional={
        "bootOrder": orders,
        "iso": st.just({"source": "https://h/x.iso"}),
        "resources": st.fixed_dictionaries(
            {}, optional={"cpu": st.fixed_dictionaries({"cores": st.integers(1, 16)})}
        ),
    },
)


def resolved(spec: dict[str, Any]) -> Resolved:
    return resolve({"metadata": {"name": "m", "uid": "1"}, "spec": spec}, {})


@given(specs)
def test_every_disk_is_there_once_and_one_boots(spec: dict[str, Any]) -> None:
    """The template's and the machine's own, each by its name, none lost, none twice."""
    found = resolved(spec).size.disks
    assert {disk.name for disk in found} == {"root", *(each["name"] for each in spec["disks"])}
    assert len({disk.name for disk in found}) == len(found)
    assert [disk.boot for disk in found].count(True) == 1
    said = {each["name"]: each["sizeGB"] * 1024 for each in spec["disks"]}
    assert all(disk.size_mib == said.get(disk.name, disk.size_mib) for disk in found)


@given(specs)
def test_interfaces_have_addresses_of_their_own(spec: dict[str, Any]) -> None:
    """Whatever they are called."""
    macs = [nic.mac for nic in resolved(spec).nics]
    assert len(set(macs)) == len(macs)


@given(st.text(max_size=40), st.text(max_size=40))
def test_made_addresses_are_local_and_of_one_interface(uid: str, name: str) -> None:
    """And the same whenever they are asked for."""
    mac = stable_mac(uid, name)
    assert int(mac[:2], 16) & 0b11 == 0b10
    assert mac == stable_mac(uid, name)
    assert stable_mac(uid, name, [mac.upper()]) != mac


@given(st.lists(st.binary(min_size=1, max_size=200), min_size=2, max_size=4))
@example([b"#!/bin/sh", b"#!/bin/sh\nsendmail <<.\nMIME-Version: 1.0\n.\n"])
def test_texts_of_any_kind_survive_being_joined(parts: list[bytes]) -> None:
    """No byte is lost to line ends, boundaries or character sets.

    A text that is a message by its own headers is no text: what is in it is joined.
    """
    assume(not any("mime-version" in message_from_bytes(each) for each in parts))
    joined = message_from_bytes(joined_texts(tuple(parts)))
    payload = joined.get_payload()
    assert isinstance(payload, list)
    assert [each.get_payload(decode=True) for each in payload] == parts
