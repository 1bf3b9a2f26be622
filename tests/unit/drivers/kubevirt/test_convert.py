"""What a plan looks like as a VirtualMachine."""

from dataclasses import replace

import orjson
import pytest

from novacron.core.hardware import Hardware, Topology
from novacron.core.machine import Nic, Resources
from novacron.core.segment import Segment
from novacron.core.volume import Volume
from novacron.drivers.kubevirt.convert import virtual_machine
from unit.drivers.kubevirt.plans import DECLARED, UID, plan


def domain_of(vm):
    return vm["spec"]["template"]["spec"]["domain"]


def test_a_machine_that_was_declared_in_the_cluster_is_owned_by_its_declaration():
    (owner,) = virtual_machine(plan(), owned=True)["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Machine", "web", UID)


def test_nothing_refers_to_an_owner_in_another_cluster():
    """Its garbage collector would not find the owner, and remove the machine."""
    assert "ownerReferences" not in virtual_machine(plan(), owned=False)["metadata"]


def test_machine_and_instance_carry_the_uid_and_the_labels_of_their_family():
    vm = virtual_machine(plan(), owned=True)
    wanted = {**DECLARED.labels, "novacron.io/machine-uid": UID}
    assert vm["metadata"]["labels"] == wanted
    assert vm["spec"]["template"]["metadata"]["labels"] == wanted


@pytest.mark.parametrize(("start", "strategy"), [(True, "Always"), (False, "Halted")])
def test_power_is_a_strategy_and_never_running(start, strategy):
    """KubeVirt refuses an object that has both, and one that has neither."""
    spec = virtual_machine(plan(start=start), owned=True)["spec"]
    assert spec["runStrategy"] == strategy
    assert "running" not in spec


def test_size_is_given_as_sockets_so_that_it_can_grow_while_the_guest_runs():
    domain = domain_of(virtual_machine(plan(), owned=True))
    assert domain["cpu"] == {"sockets": 2, "cores": 1, "threads": 1}
    assert domain["memory"] == {"guest": "4Gi"}


def test_a_topology_that_was_asked_for_is_kept():
    hardware = Hardware(topology=Topology(sockets=1, cores=2, threads=2))
    size = Resources(4, 4096, 40960)
    domain = domain_of(
        virtual_machine(replace(plan(hardware=hardware), resources=size), owned=True)
    )
    assert domain["cpu"] == {"sockets": 1, "cores": 2, "threads": 2}


def test_secure_boot_switches_on_what_keeps_it_secure():
    """KubeVirt refuses it otherwise, and the specification has no field for it."""
    domain = domain_of(virtual_machine(plan(hardware=Hardware(secure_boot=True)), owned=True))
    assert domain["features"]["smm"] == {"enabled": True}
    assert domain["firmware"]["bootloader"] == {"efi": {"secureBoot": True}}


def test_no_two_devices_are_tried_at_the_same_time():
    hardware = Hardware(boot_order=("network", "disk"))
    nics = (Nic("", name="eth0"), Nic("prod", name="eth1", segment=Segment("br0", 7)))
    wanted = plan(hardware=hardware, nics=nics, volumes=(Volume("data", 1024),))
    devices = domain_of(virtual_machine(wanted, owned=True))["devices"]
    numbers = {each["name"]: each.get("bootOrder") for each in devices["interfaces"]}
    numbers |= {each["name"]: each.get("bootOrder") for each in devices["disks"]}
    assert numbers == {"eth0": 1, "eth1": 2, "root": 33, "data": None}


def test_the_pods_network_is_masqueraded_and_others_are_bridged():
    """KubeVirt moves a running machine on the pods' network only so."""
    nics = (Nic("", name="eth0"), Nic("prod", name="eth1", segment=Segment("br0", 7)))
    spec = virtual_machine(plan(nics=nics), owned=True)["spec"]["template"]["spec"]
    first, second = spec["domain"]["devices"]["interfaces"]
    assert first["masquerade"] == {}
    assert second["bridge"] == {}
    assert spec["networks"] == [
        {"name": "eth0", "pod": {}},
        {"name": "eth1", "multus": {"networkName": "prod"}},
    ]


def test_user_data_is_never_in_the_object_itself():
    """It may be long, and whoever can read machines could read it."""
    vm = virtual_machine(plan(user_data="#cloud-config\npassword: hidden"), owned=True)
    assert b"hidden" not in orjson.dumps(vm)
    volumes = {each["name"]: each for each in vm["spec"]["template"]["spec"]["volumes"]}
    assert volumes["cloudinitdisk"]["cloudInitNoCloud"]["secretRef"] == {"name": "web-cloud-init"}


def test_a_machine_that_is_told_nothing_has_no_disk_that_tells_it():
    vm = virtual_machine(plan(), owned=True)
    assert [each["name"] for each in vm["spec"]["template"]["spec"]["volumes"]] == ["root"]


def test_interfaces_that_nobody_named_have_names_all_the_same():
    """KubeVirt joins interfaces and networks by them."""
    spec = virtual_machine(plan(nics=(Nic("default"), Nic("blue"))), owned=True)["spec"]["template"]
    names = [each["name"] for each in spec["spec"]["networks"]]
    assert names == ["net0", "net1"]
    interfaces = spec["spec"]["domain"]["devices"]["interfaces"]
    assert [each["name"] for each in interfaces] == names


@pytest.mark.parametrize(
    ("may_move", "strategy"), [(True, "LiveMigrateIfPossible"), (False, "None")]
)
def test_what_becomes_of_it_on_a_drained_node_is_said_of_every_machine(may_move, strategy):
    """A cluster where nobody said anything stops them all."""
    vm = virtual_machine(plan(may_move=may_move), owned=True)
    assert vm["spec"]["template"]["spec"]["evictionStrategy"] == strategy
