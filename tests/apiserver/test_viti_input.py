"""A real API server says no to bad Machines in words that a user understands."""

import pytest

from api import Refused
from declared import Object
from declared_viti import disk, machine, machine_class, network, nic
from novacron.crd import CustomResource
from novacron.families.viti.kinds import Machine, MachineClass, NetworkConfiguration

UNIT = "must be at least 1Mi: a number without a unit counts bytes"
QUANTITY = "must be a quantity above zero and below 1Ei"
SOURCE = "source must be https://host/path"
MAC = "52:54:00:aa:00:01"
SECRET = {"name": "s"}

BAD: dict[str, tuple[Object, str]] = {
    "name of 64": (machine("a" * 64), "metadata.name must be at most 63"),
    "name with a dot": (machine("a.b"), "the label vitistack.io/machine of all that is made"),
    "unknown field": (machine(ram=1), 'unknown field "spec.ram"'),
    "template": (machine(template="Extra Large"), "must be small, medium, large or the name of a"),
    "template twice": (machine(machineClass="a"), "template and machineClass say the same thing"),
    "no cores": (machine(resources={"cpu": {"cores": 0}}), "greater than or equal to 1"),
    "too many cores": (machine(resources={"cpu": {"cores": 257}}), "less than or equal to 256"),
    "too many cpus": (
        machine(resources={"cpu": {"cores": 256, "sockets": 5}}),
        "cores times sockets times threads must be at most 1024",
    ),
    "too many cpus of upstream": (
        machine(cpu={"cores": 256, "threadsPerCore": 8}),
        "cores times sockets times threads must be at most 1024",
    ),
    "cpu twice": (
        machine(resources={"cpu": {"cores": 1}}, cpu={"cores": 1}),
        "resources.cpu and cpu say the same thing: leave cpu out",
    ),
    "no memory": (machine(resources={"memory": {"size": "0"}}), QUANTITY),
    "memory below zero": (machine(resources={"memory": {"size": "-1Gi"}}), QUANTITY),
    "memory without unit": (machine(resources={"memory": {"size": "8"}}), UNIT),
    "memory of garbage": (machine(resources={"memory": {"size": "8GB"}}), QUANTITY),
    "no memory of upstream": (machine(memory=0), "is in bytes and must be at least 1048576"),
    "memory twice": (
        machine(resources={"memory": {"size": "1Gi"}}, memory=2**30),
        "resources.memory and memory say the same thing: leave memory out",
    ),
    "disk name": (disk(name="Data_1"), "must be lower-case letters, digits and '-'"),
    "disk name of 64": (disk(name="a" * 64), "Too long: may not be more than 63"),
    "disk of another medium": (disk(name="cloudinitdisk"), "are what the machine's own media are"),
    "two disks of one name": (
        machine(disks=[{"name": "a", "size": "1Gi"}, {"name": "a", "size": "2Gi"}]),
        "Duplicate value",
    ),
    "disk of 0": (disk(size="0"), QUANTITY),
    "disk below zero": (disk(size="-1Gi"), QUANTITY),
    "disk without unit": (disk(size=100), UNIT),
    "disk of no size": (disk(size=None), "every disk but root needs a size"),
    "disk of 0 GB": (disk(size=None, sizeGB=0), "greater than or equal to 1"),
    "disk of two sizes": (disk(sizeGB=1), "size and sizeGB both say how large the disk is"),
    "two disks to boot": (
        machine(disks=[{"name": "root", "boot": True}, {"name": "b", "size": "1Gi", "boot": True}]),
        "only one disk can have boot",
    ),
    "access mode": (disk(accessMode="Any"), 'supported values: "ReadWriteOnce"'),
    "volume mode": (disk(volumeMode="Tape"), 'supported values: "Filesystem", "Block"'),
    "encrypted disk": (disk(encrypted=True), "KubeVirt encrypts no disks"),
    "disk type": (disk(type="gp3"), 'supported values: "virtio", "sata", "scsi"'),
    "33 disks": (
        machine(disks=[{"name": f"d{number}", "size": "1Gi"} for number in range(33)]),
        "must have at most 32 items",
    ),
    "two interfaces of one name": (
        machine(networks=[{"name": "a"}, {"name": "a", "networkName": "b"}]),
        "Duplicate value",
    ),
    "two interfaces of one mac": (
        machine(
            networks=[
                {"name": "a", "networkName": "x", "macAddress": MAC},
                {"name": "b", "networkName": "y", "macAddress": MAC.upper()},
            ]
        ),
        "each interface needs a macAddress of its own",
    ),
    "mac": (nic(macAddress="52:54:00:12:34"), "must be a unicast MAC address such as"),
    "mac of many": (nic(macAddress="01:00:5e:00:00:01"), "must be a unicast MAC address"),
    "model": (nic(model="ne1000"), 'supported values: "virtio", "e1000", "e1000e", "rtl8139"'),
    "network name": (nic(networkName="Prod Net"), "must be the name of an object"),
    "two pod networks": (
        machine(networks=[{"name": "a"}, {"name": "b"}]),
        "only one interface can be on the pod network",
    ),
    "networks twice": (
        machine(networks=[{"name": "a"}], network={"networkNamespaceName": "n"}),
        "networks and network say the same thing: leave network out",
    ),
    "boot order": (machine(bootOrder=["floppy"]), 'supported values: "disk", "network", "cdrom"'),
    "boot order twice": (machine(bootOrder=["disk", "disk"]), "Duplicate value"),
    "secure boot without efi": (
        machine(domain={"firmware": {"bootloader": {"secureBoot": True}}}),
        "secureBoot needs EFI: set efi to true",
    ),
    "secure boot on an old chipset": (
        machine(
            domain={
                "machine": {"type": "pc-i440fx"},
                "firmware": {"bootloader": {"efi": True, "secureBoot": True}},
            }
        ),
        "secureBoot needs the q35 chipset",
    ),
    "machine type": (machine(domain={"machine": {"type": "Q 35"}}), "must be a machine type such"),
    "user data twice": (
        machine(cloudInit={"userData": "#cloud-config", "userDataBase64": "I2E="}),
        "userData and userDataBase64 each say what the user data is",
    ),
    "user data of upstream too": (
        machine(cloudInit={"userData": "#cloud-config"}, userData="#!/bin/sh"),
        "cloudInit.userData and userData say the same thing",
    ),
    "user data in two secrets": (
        machine(cloudInit={"secretRef": SECRET, "userDataSecretRef": SECRET}),
        "each say where more user data is: keep one of them",
    ),
    "network data twice": (
        machine(cloudInit={"networkData": "version: 2", "networkDataSecretRef": SECRET}),
        "each say what the network is",
    ),
    "user data not in base64": (machine(cloudInit={"userDataBase64": "#!/"}), "must be base64"),
    "too much user data": (
        machine(cloudInit={"userData": "#" * 65537}),
        "may not be more than 65536",
    ),
    "secret without name": (machine(cloudInit={"secretRef": {}}), "name: Required value"),
    "key of a secret": (
        machine(cloudInit={"secretRef": {"name": "s", "key": "a/b"}}),
        "must be letters, digits",
    ),
    "image": (machine(image={"source": "ubuntu"}), SOURCE),
    "image of nothing": (machine(image={}), "image.source: Required value"),
    "image checksum": (
        machine(image={"source": "https://h/i", "checksum": "md5:1"}),
        "must be sha256: and 64",
    ),
    "checksum of a claim": (
        machine(image={"source": "pvc://ns/claim", "checksum": "sha256:" + "a" * 64}),
        "only what comes over http:// or https:// can be checked",
    ),
    "medium": (machine(iso={"source": "file:///x.iso"}), SOURCE),
    "medium twice": (
        machine(iso={"source": "https://h/x.iso"}, os={"isoUri": "https://h/x.iso"}),
        "iso and os.isoUri say the same thing",
    ),
    "medium of upstream twice": (
        machine(os={"imageID": "https://h/x.iso", "isoUri": "https://h/x.iso"}),
        "imageID and isoUri each say what to install from",
    ),
    "architecture": (machine(os={"architecture": "vax"}), 'supported values: "amd64"'),
    "provider": (machine(provider="vmware"), 'supported values: "kubevirt", "proxmox"'),
    "strategy": (machine(updateStrategy={"type": "Hope"}), '"RollingUpdate", "Recreate"'),
    "snapshot name": (machine(snapshots=[{"name": "A b"}]), "must be lower-case letters"),
    "vlan 0": (network(vlan=0), "spec.vlan in body should be greater than or equal to 1"),
    "vlan 4095": (network(vlan=4095), "spec.vlan in body should be less than or equal to 4094"),
    "bridge": (network(bridge="br 0"), "must be the name of a bridge on the nodes"),
    "bridge of dots": (network(bridge=".."), "must be the name of a bridge on the nodes"),
    "bridge of 16": (network(bridge="b" * 16), "may not be more than 15"),
    "attachment with a vlan": (
        network(networkAttachmentDefinition="lan"),
        "leave vlan and bridge out",
    ),
    "vlan of an interface": (
        network(networkInterfaces=[{"vlan": "4095"}]),
        "must be a VLAN from 1 to 4094",
    ),
    "address of an interface": (
        network(networkInterfaces=[{"ipv4Addresses": ["10.0.0.256"]}]),
        "must be an IP address such as 10.0.0.5",
    ),
    "interfaces of one mac": (
        network(networkInterfaces=[{"macAddress": MAC}, {"macAddress": MAC.upper()}]),
        "each interface needs a macAddress of its own",
    ),
    "class of no cores": (machine_class(cpu={"cores": 0}), "greater than or equal to 1"),
    "class of no memory": (machine_class(memory={"quantity": "0"}), QUANTITY),
    "class below its least": (
        machine_class(memory={"quantity": "1Gi", "minQuantity": "2Gi"}),
        "quantity must not be below minQuantity",
    ),
    "class above its most": (
        machine_class(memory={"quantity": "3Gi", "maxQuantity": "2Gi"}),
        "quantity must not be above maxQuantity",
    ),
    "class name": (machine_class("a.b"), "machines name it in spec.template"),
}  # fmt: skip


@pytest.mark.parametrize(("written", "sentence"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_words(check, written, sentence) -> None:
    """KubeVirt would take some of this and do something else; here it is not even stored."""
    with pytest.raises(Refused) as refusal:
        check(written)
    assert sentence in str(refusal.value)


GOOD: dict[str, Object] = {
    "name of 63": machine("a" * 63),
    "nothing at all": machine(template=None),
    "root as large as the template's": machine(disks=[{"name": "root", "storageClass": "fast"}]),
    "disk of a class": machine(template="huge", disks=[{"name": "data", "storageClass": "fast"}]),
    "32 disks": machine(disks=[{"name": f"d{number}", "size": "1Gi"} for number in range(32)]),
    "disks of upstream": machine(
        disks=[
            {"name": "root", "sizeGB": 40, "boot": True, "type": "virtio", "encrypted": False},
            {"name": "data2", "sizeGB": 200, "type": "sata", "iops": 500, "throughput": 200},
        ]
    ),
    "32 interfaces": machine(
        networks=[{"name": f"n{number}", "networkName": f"n{number}"} for number in range(32)]
    ),
    "pod network and another": machine(networks=[{"name": "a"}, {"name": "b", "networkName": "c"}]),
    "network data alone": machine(cloudInit={"networkData": "version: 2"}),
    "user data and a secret": machine(cloudInit={"userData": "#cloud-config", "secretRef": SECRET}),
    "encoded in lines": machine(cloudInit={"userDataBase64": "I2Ns\nb3Vk\n"}),
    "old chipset": machine(domain={"machine": {"type": "pc-i440fx"}}),
    "secure boot": machine(domain={"firmware": {"bootloader": {"efi": True, "secureBoot": True}}}),
    "boot order": machine(bootOrder=["network", "disk", "cdrom"]),
    "image of a registry": machine(image={"source": "docker://quay.example/images/fedora:42"}),
    "medium of a claim": machine(iso={"source": "pvc://isos/debian"}),
    "machine of upstream": machine(
        template=None,
        machineClass="medium",
        name="debian-iso-vm",
        provider="kubevirt",
        cpu={"cores": 4, "sockets": 4, "threadsPerCore": 2},
        memory=4294967296,
        os={"family": "linux", "imageID": "https://h/debian.iso", "architecture": "amd64"},
        network={"networkNamespaceName": "prod", "assignPublicIP": False},
        sshKeys=["ssh-ed25519 AAAA"],
        tags={"a": "b"},
        backup={"enabled": False},
    ),
    "network of a bridge": network(vlan=None, bridge="br-lan.7"),
    "network of upstream": network(
        vlan=None,
        name="m1",
        provider="kea",
        networkInterfaces=[
            {
                "name": "m1",
                "macAddress": MAC,
                "vlan": "2101",
                "ipv4Addresses": ["10.1.2.3"],
                "ipv4Subnet": "10.1.2.0/24",
                "ipv4Gateway": "10.1.2.1",
                "dns": ["10.1.2.1"],
                "dhcpReserved": True,
            }
        ],
    ),
    "class of upstream": machine_class(
        displayName="Huge",
        machineProviders=["kubevirt"],
        cpu={"cores": 4, "sockets": 0, "threads": 0},
        gpu={"cores": 0},
    ),
    "class with disks": machine_class(disks=[{"name": "root", "size": "200Gi"}]),
}


@pytest.mark.parametrize("written", GOOD.values(), ids=GOOD)
def test_good_input_is_accepted_and_can_be_read(check, written) -> None:
    """Upstream's manifests and the specification's apply as they are."""
    kept = check(written)
    types: dict[str, type[CustomResource]] = {
        each.__name__: each for each in (Machine, NetworkConfiguration, MachineClass)
    }
    assert types[kept["kind"]].model_validate(kept).metadata.name == written["metadata"]["name"]
