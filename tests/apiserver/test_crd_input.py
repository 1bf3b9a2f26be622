"""A real API server says no to bad input in words that a user understands, and yes to the rest."""

import json

import pytest

from api import Refused
from declared import Object, host, machine, network, source, static, vm
from novacron.crd import CustomResource
from novacron.families.novacron.kinds import Host, VirtualMachine
from novacron.localcluster.errors import LocalClusterError

QUANTITY = "must be a quantity above zero and below 1Ei"
SCHEMES = "image.source is required and must be marketplace://name"
LABEL = {"key": "a", "operator": "In"}
TERM = {
    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}]
}

BAD: dict[str, tuple[Object, str]] = {
    "unknown field": (vm(ram="1Gi"), 'unknown field "spec.template.spec.ram"'),
    "no cpu": (vm(resources__cpu=None), "resources.cpu: Required value"),
    "cpu 0": (vm(resources__cpu=0), "resources.cpu in body should be greater than or equal to 1"),
    "cpu -1": (vm(resources__cpu=-1), "should be greater than or equal to 1"),
    "cpu 1025": (vm(resources__cpu=1025), "should be less than or equal to 1024"),
    "cpu in words": (vm(resources__cpu="four"), 'resources.cpu in body must be of type integer'),
    "no memory": (vm(resources__memory=None), "resources.memory: Required value"),
    "memory of garbage": (vm(resources__memory="lots"), QUANTITY),
    "memory below zero": (vm(resources__memory="-1Gi"), QUANTITY),
    "memory of 0": (vm(resources__memory=0), QUANTITY),
    "memory beyond measure": (vm(resources__memory="1e9999"), QUANTITY),
    "memory in no unit": (vm(resources__memory="4GB"), QUANTITY),
    "memory of a fraction": (vm(resources__memory=1.5), "must be of type"),
    "disk below zero": (vm(resources__disk="-10Gi"), QUANTITY),
    "no image": (vm(image=None), "image: Required value"),
    "no source": (vm(image={}), "image.source: Required value"),
    "empty source": (source(""), SCHEMES),
    "unknown scheme": (source("ftp://host/image"), SCHEMES),
    "no scheme": (source("ubuntu"), SCHEMES),
    "claim without name": (source("pvc://namespace"), SCHEMES),
    "bucket without path": (source("s3://bucket"), SCHEMES),
    "file on a host": (source("file://host/path"), SCHEMES),
    "source too long": (source("http://" + "a" * 2048), "Too long: may not be more than 2048"),
    "checksum": (vm(image__checksum="md5:abc"), "must be sha256: and 64"),
    "300 networks": (
        vm(networks=[{"name": f"n{number}"} for number in range(300)]),
        "networks: Too many: 300: must have at most 32 items",
    ),
    "two networks of one name": (vm(networks=[{"name": "a"}, {"name": "a"}]), "Duplicate value"),
    "network without name": (vm(networks=[{}]), "networks[0].name: Required value"),
    "network name": (vm(networks=[{"name": "Net_1"}]), "must be lower-case letters, digits"),
    "network type": (network(type="wifi"), 'supported values: "bridge", "ovs", "sr-iov"'),
    "mac": (network(mac="01:00:5e:00:00:01"), "must be a unicast MAC address"),
    "two networks of one mac": (
        vm(
            networks=[
                {"name": "a", "mac": "52:54:00:aa:00:01"},
                {"name": "b", "mac": "52:54:00:AA:00:01"},
            ]
        ),
        "each network needs a MAC address of its own",
    ),
    "static without address": (
        network(ipv4={"method": "static"}),
        "networks[0].ipv4.address: Required value: method static needs an address",
    ),
    "dhcp with address": (
        network(ipv4={"method": "dhcp", "address": "10.0.0.2/24"}),
        "method dhcp takes neither address nor gateway",
    ),
    "dhcp by default with gateway": (
        network(ipv4={"gateway": "10.0.0.1"}),
        "method dhcp takes neither address nor gateway",
    ),
    "method": (network(ipv4={"method": "guess"}), 'supported values: "dhcp", "static"'),
    "address without prefix": (static("10.0.1.10", "10.0.1.1"), "must be an IPv4 address with its"),
    "address of the other family": (static("fd00::2/64", "10.0.1.1"), "must be an IPv4 address"),
    "gateway elsewhere": (static("10.0.1.10/24", "10.0.2.1"), "gateway must be another address in"),
    "link-local gateway of IPv4": (static("10.0.1.10/24", "169.254.1.1"), "must be another"),
    "gateway is itself": (static("10.0.1.10/24", "10.0.1.10"), "gateway must be another address"),
    "gateway of garbage": (static("10.0.1.10/24", "gw"), "gateway must be an IPv4 address without"),
    "ipv6 without prefix": (static("fd00::2", "fd00::1", "ipv6"), "must be an IPv6 address with"),
    "name server": (network(dns={"servers": ["dns.example"]}), "must be an IPv4 or IPv6 address"),
    "volume without size": (vm(volumes=[{"name": "a"}]), "volumes[0].size: Required value"),
    "volume below zero": (vm(volumes=[{"name": "a", "size": "-1Gi"}]), QUANTITY),
    "access mode": (
        vm(volumes=[{"name": "a", "size": "1Gi", "accessMode": "Any"}]),
        'supported values: "ReadWriteOnce"',
    ),
    "no devices": (vm(devices=[{"type": "gpu", "count": 0}]), "greater than or equal to 1"),
    "user data": (vm(userData="#" * 65537), "Too long: may not be more than 65536"),
    "label demand": (
        vm(
            affinity={
                "podAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {"labelSelector": {"matchExpressions": [LABEL]}}
                    ]
                }
            }
        ),
        "operator In and NotIn need values",
    ),
    "host demand": (
        vm(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": TERM}}),
        "operator Gt and Lt take exactly one whole number",
    ),
    "toleration": (vm(tolerations=[{"effect": "NoExecute"}]), "without a key, operator must be"),
    "toleration with value": (
        vm(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
        "operator Exists takes no value",
    ),
    "toleration for a while of what sends nobody away": (
        vm(tolerations=[{"key": "a", "effect": "NoSchedule", "tolerationSeconds": 60}]),
        "with tolerationSeconds, effect must be NoExecute",
    ),
    "toleration of every effect for a while": (
        vm(tolerations=[{"operator": "Exists", "tolerationSeconds": 60}]),
        "with tolerationSeconds, effect must be NoExecute",
    ),
    "hook of nothing": (vm(lifecycle={"preStop": {}}), "needs exactly one of exec and httpGet"),
    "hook port": (
        vm(lifecycle={"preStop": {"httpGet": {"port": 65536}}}),
        "must be a port from 1 to 65535",
    ),
    "bandwidth": (machine(migrationPolicy={"bandwidth": "fast"}), "must be bits per second"),
    "bandwidth of bits below 1Mi": (
        machine(migrationPolicy={"bandwidth": "8Mbps"}),
        "at least 1Mi",
    ),
    "bandwidth of bytes below 1Mi": (
        machine(migrationPolicy={"bandwidth": "1023Ki"}),
        "at least 1Mi",
    ),
    "bandwidth of 0": (machine(migrationPolicy={"bandwidth": "0Gbps"}), "must be bits per second"),
    "schedule": (machine(snapshotPolicy={"schedule": "daily"}), "must be a cron schedule of five"),
    "six fields": (machine(snapshotPolicy={"schedule": "0 0 2 * * *"}), "must be a cron schedule"),
    "retention": (
        machine(snapshotPolicy={"schedule": "@daily", "retention": 0}),
        "should be greater than or equal to 1",
    ),
    "time zone": (
        machine(snapshotPolicy={"schedule": "@daily", "timeZone": "here and now"}),
        "must be the name of a time zone",
    ),
    "snapshots on deletion": (
        machine(snapshotPolicy={"schedule": "@daily", "onDelete": "Keep"}),
        'supported values: "Delete", "Protect"',
    ),
    "time zone of no schedule": (
        machine(snapshotPolicy={"onDelete": "Protect", "timeZone": "UTC"}),
        "snapshotPolicy.timeZone: Forbidden: timeZone is the schedule's: there is none",
    ),
    "memory of no schedule": (
        machine(snapshotPolicy={"onDelete": "Protect", "memory": True}),
        "snapshotPolicy.memory: Forbidden: memory is for snapshots by schedule",
    ),
    "name of a scheduled snapshot": (
        machine(snapshots=[{"name": "snapshot-20240120-020000"}]),
        "names such as snapshot-20240120-020000 are for scheduled snapshots",
    ),
    "name of a snapshot": (machine(snapshots=[{"name": "A b"}]), "must be lower-case letters"),
    "snapshot called by a number": (machine(snapshots=[{"name": "42"}]), "a name of digits only"),
    "memory to discard": (
        machine(snapshots=[{"name": "a", "memory": True, "discard": True}]),
        "memory is for snapshots to take",
    ),
    "restore without request": (machine(restore={"snapshot": "a"}), "request: Required value"),
    "strategy": (machine(updateStrategy={"type": "Hope"}), '"RollingUpdate", "Recreate"'),
    "strategy of the other type": (
        machine(updateStrategy={"type": "Recreate", "rollingUpdate": {}}),
        "rollingUpdate is for type RollingUpdate only",
    ),
    "share of machines": (
        machine(updateStrategy={"rollingUpdate": {"maxUnavailable": "some"}}),
        "must be a whole number or a percentage",
    ),
    "name of 64": (machine("a" * 64), "metadata.name must be at most 63"),
    "name with a dot": (machine("a.b"), "metadata.name must be at most 63 lower-case letters"),
    "host driver": (host(driver="magic"), 'supported values: "simulation"'),
    "host without capacity": (host(simulation=None), "driver simulation needs simulation"),
    "host of another cluster": (
        host(driver="kubevirt", simulation=None, endpoint="kubevirt://team/secret"),
        "is reached by credentialsSecret",
    ),
    "host of no cpu": (host(simulation__capacity__cpu=0), "greater than or equal to 1"),
    "host of garbage": (host(simulation__capacity__memory="big"), QUANTITY),
    "delay": (host(simulation__delays={"create": "soon"}), "must be a duration such as 500ms"),
    "fault": (
        host(simulation__faults=[{"operation": "explode", "error": "Busy"}]),
        'supported values: "create", "resize"',
    ),
    "fault rate": (
        host(simulation__faults=[{"operation": "stop", "error": "Busy", "rate": 2}]),
        "should be less than or equal to 1",
    ),
    "network without bridge": (
        host(libvirt={"networks": {"lan": {"type": "ovs"}}}),
        "types bridge and ovs need the name of a bridge",
    ),
    "network of a bridge in a VLAN": (
        host(libvirt={"networks": {"lan": {"type": "bridge", "bridge": "br0", "vlan": 7}}}),
        "vlan is for type ovs only",
    ),
    "overcommit": (host(overcommit={"cpu": 0}), "must be a number from 0.1 to 100"),
    "taint": (host(taints=[{"key": "a", "effect": "Never"}]), '"NoSchedule", "PreferNoSchedule"'),
}  # fmt: skip


@pytest.mark.parametrize(("written", "sentence"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_words(check, written, sentence) -> None:
    """Whoever mistypes learns what was expected and where, before anything is stored."""
    with pytest.raises(Refused) as refusal:
        check(written)
    assert sentence in str(refusal.value)


SOURCES = ["marketplace://ubuntu-22.04-lts", "builtin://tiny", "http://images.example.com/u.qcow2"]
SOURCES += ["https://images.example.com/", "s3://bucket/path/to/image.vmdk", "pvc://ns/claim"]
SOURCES += ["file:///var/lib/images/u.img"]

GOOD: dict[str, Object] = {
    **{text: source(text) for text in SOURCES},
    "name of 63": machine("a" * 63),
    "memory in bytes": vm(resources__memory=536870912),
    "memory with a fraction": vm(resources__memory="1.5Gi"),
    "32 networks": vm(networks=[{"name": f"n{number}"} for number in range(32)]),
    "static ipv6": static("2001:db8::10/64", "2001:db8::1", "ipv6"),
    "link-local gateway": static("2001:db8::10/64", "fe80::1", "ipv6"),
    "bandwidth in bytes": machine(migrationPolicy={"bandwidth": "100Mi"}),
    "bandwidth in bits": machine(migrationPolicy={"bandwidth": "500Mbps"}),
    "bandwidth in large units": machine(migrationPolicy={"bandwidth": "1.5Gbps"}),
    "the least bandwidth": machine(migrationPolicy={"bandwidth": "8389Kbps"}),
    "the least bandwidth in bytes": machine(migrationPolicy={"bandwidth": "1Mi"}),
    "schedule by name": machine(snapshotPolicy={"schedule": "@daily", "timeZone": "Europe/Vienna"}),
    "protection of snapshots on demand": machine(snapshotPolicy={"onDelete": "Protect"}),
    "share of machines": machine(updateStrategy={"rollingUpdate": {"maxUnavailable": "25%"}}),
    "snapshot to take and to discard": machine(
        snapshots=[{"name": "a", "memory": True}, {"name": "b", "discard": True}],
        restore={"snapshot": "a", "request": "1"},
    ),
    "scheduled snapshot to discard": machine(
        snapshots=[{"name": "snapshot-20240120-020000", "discard": True}]
    ),
    "hook by http": vm(lifecycle={"preStop": {"httpGet": {"port": "web", "path": "/drain"}}}),
    "tolerate for a while": vm(
        tolerations=[{"key": "a", "effect": "NoExecute", "tolerationSeconds": 0, "value": "b"}]
    ),
    "tolerate all": vm(tolerations=[{"operator": "Exists"}]),
    "host with delays": host(simulation__delays={"create": "1h30m", "stop": "500ms", "start": "0"}),
    "host with overcommit": host(overcommit={"cpu": 4, "memory": 1.5}),
}


@pytest.mark.parametrize("written", GOOD.values(), ids=GOOD)
def test_good_input_is_accepted_and_can_be_read(check, written) -> None:
    """Whatever the server admits, the operator's own types can parse."""
    kept = check(written)
    types: dict[str, type[CustomResource]] = {"VirtualMachine": VirtualMachine, "Host": Host}
    assert types[kept["kind"]].model_validate(kept).metadata.name == written["metadata"]["name"]


TRANSITIONS: dict[str, tuple[Object, str]] = {
    "image": ({"image": {"source": "builtin://other"}}, "image.source cannot change once set"),
    "disk": ({"resources": {"disk": "9Gi"}}, "disk can grow but never shrink"),
    "volume": ({"volumes": [{"name": "a", "size": "1023Mi"}]}, "volumes can grow but never shrink"),
}


@pytest.mark.parametrize(("change", "sentence"), TRANSITIONS.values(), ids=TRANSITIONS)
def test_changes_that_no_machine_can_follow_are_refused(
    plane, namespace, create, change, sentence
) -> None:
    """The operator never has to explain later what the server can refuse now."""
    create(vm(resources__disk="10Gi", volumes=[{"name": "a", "size": "1Gi"}]))
    patch = json.dumps({"spec": {"template": {"spec": change}}})
    with pytest.raises(LocalClusterError, match=sentence):
        plane.kubectl("patch", "-n", namespace, "vm.novacron.io/vm", "--type=merge", "-p", patch)


def test_disks_can_grow_and_volumes_come_and_go(plane, namespace, create) -> None:
    """Only shrinking is refused; the same size in another unit is no change."""
    create(vm(resources__disk="10Gi", volumes=[{"name": "a", "size": "1Gi"}]))
    for change in (
        {"resources": {"disk": "10240Mi"}, "volumes": [{"name": "a", "size": "2Gi"}]},
        {"resources": {"disk": "20Gi"}, "volumes": [{"name": "b", "size": "1Mi"}]},
    ):
        patch = json.dumps({"spec": {"template": {"spec": change}}})
        plane.kubectl("patch", "-n", namespace, "vm.novacron.io/vm", "--type=merge", "-p", patch)
