"""A real API server accepts our definitions, and says no in words that a user understands."""

import json
from collections.abc import Callable
from copy import deepcopy
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from pydantic import Field

from novacron.app.generate import CRDS
from novacron.crd import (
    Atomic,
    CustomResource,
    IntOrString,
    ListMap,
    ListSet,
    Model,
    PositiveQuantity,
    PreserveUnknown,
    Quantity,
    Rule,
    Scale,
    kind,
)
from novacron.crd.manifest import manifest, to_yaml
from novacron.families.novacron import RESOURCES, Host, VirtualMachine
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.errors import LocalClusterError

ROOT = Path(__file__).parents[2]
SPECIFIED = ROOT / "tests" / "golden" / "spec-000-virtualmachine.yaml"
NAMES = [versions[0].__kind__.full_name for versions in RESOURCES]

Object = dict[str, Any]


class Item(Model):
    """An item."""

    name: str
    note: str = "y"


class GadgetSpec(Model):
    """One field for everything that a type can say."""

    replicas: int = 1
    items: Annotated[list[Item], ListMap("name")] = []
    tags: Annotated[list[str], ListSet()] = []
    order: Annotated[list[str] | None, Atomic()] = None
    pair: Annotated[dict[str, str], Atomic()] = {}
    free: Annotated[dict[str, Any], PreserveUnknown()] = {}
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    port: IntOrString | None = None
    size: PositiveQuantity = "1Gi"
    seen: Quantity = 0  # type: ignore[assignment]  # JSON may say 0
    since: datetime | None = None
    colour: Literal["red"] = "red"
    first: Annotated[Item, Rule("self.name != 'x'", "x is taken")] = Item(name="a")


class GadgetStatus(Model):
    replicas: int = 0
    selector: str | None = None


GADGET: Any = {"group": "test.novacron.io", "scale": Scale(selector_path=".status.selector")}


@kind(version="v2", name="Gadget", **GADGET)
class Gadget(CustomResource):
    """A gadget."""

    spec: GadgetSpec = GadgetSpec()
    status: GadgetStatus | None = None


@kind(version="v1", name="Gadget", storage=False, **GADGET)
class OldGadget(CustomResource):
    """A gadget as it was."""

    spec: GadgetSpec = GadgetSpec()
    status: GadgetStatus | None = None


def install(plane: ControlPlane, text: str, name: str) -> None:
    plane.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", input=text)
    plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", f"crd/{name}")


@pytest.fixture(scope="module")
def plane(control_plane: ControlPlane) -> ControlPlane:
    """The shared API server with our definitions on it."""
    for name in NAMES:
        install(control_plane, (ROOT / CRDS / f"{name}.yaml").read_text(encoding="utf-8"), name)
    install(control_plane, to_yaml(manifest(Gadget, OldGadget)), Gadget.__kind__.full_name)
    return control_plane


@pytest.fixture
def create(plane: ControlPlane, namespace: str) -> Callable[..., Object]:
    """Create an object, strictly checked, and return it as the server has it."""

    def ask(written: Object, *options: str) -> Object:
        arguments = ["create", "-n", namespace, "--validate=strict", "-o", "json", *options]
        made: Object = json.loads(
            plane.kubectl(*arguments, "-f", "-", input=json.dumps(written))
        )
        return made

    return ask


def put(tree: Object, path: str, value: Any) -> None:
    *parents, last = path.split(".")
    for name in parents:
        tree = tree.setdefault(name, {})
    if value is None:
        tree.pop(last, None)
    else:
        tree[last] = value


def machine(name: str = "vm", **changes: Any) -> Object:
    """Return a small machine; changes are ``template__spec__image={...}`` and the like."""
    made: Object = {
        "apiVersion": "novacron.io/v1alpha1",
        "kind": "VirtualMachine",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "spec": {
                    "resources": {"cpu": 1, "memory": "512Mi"},
                    "image": {"source": "builtin://tiny"},
                }
            }
        },
    }
    return changed(made, changes)


def host(name: str = "host", **changes: Any) -> Object:
    made: Object = {
        "apiVersion": "novacron.io/v1alpha1",
        "kind": "Host",
        "metadata": {"name": name},
        "spec": {
            "driver": "simulation",
            "simulation": {"capacity": {"cpu": 8, "memory": "16Gi", "disk": "1Ti"}},
        },
    }
    return changed(made, changes)


def changed(made: Object, changes: Object) -> Object:
    for path, value in changes.items():
        put(made["spec"], path.replace("__", "."), value)
    return made


def vm(**changes: Any) -> Object:
    """Return a machine with changes below spec.template.spec."""
    return machine(**{f"template__spec__{path}": value for path, value in changes.items()})


def network(**fields: Any) -> Object:
    return vm(networks=[{"name": "net", **fields}])


def static(address: str, gateway: str, family: str = "ipv4") -> Object:
    return network(**{family: {"method": "static", "address": address, "gateway": gateway}})


def source(text: str) -> Object:
    return vm(image__source=text)


QUANTITY = "must be a quantity above zero and below 1Ei"
SCHEMES = "image.source is required and must be marketplace://name"
LABEL = {"key": "a", "operator": "In"}
TERM = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}]}

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
    "gateway is itself": (static("10.0.1.10/24", "10.0.1.10"), "gateway must be another address"),
    "gateway of garbage": (static("10.0.1.10/24", "gw"), "gateway must be an IPv4 address without"),
    "ipv6 without prefix": (static("fd00::2", "fd00::1", "ipv6"), "must be an IPv6 address with its"),
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
    "hook of nothing": (vm(lifecycle={"preStop": {}}), "needs exactly one of exec and httpGet"),
    "hook port": (
        vm(lifecycle={"preStop": {"httpGet": {"port": 65536}}}),
        "must be a port from 1 to 65535",
    ),
    "bandwidth": (machine(migrationPolicy={"bandwidth": "fast"}), "must be bits per second"),
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
    "overcommit": (host(overcommit={"cpu": 0}), "should be greater than or equal to 0.1"),
    "taint": (host(taints=[{"key": "a", "effect": "Never"}]), '"NoSchedule", "PreferNoSchedule"'),
}  # fmt: skip


@pytest.mark.parametrize(("written", "sentence"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_in_words(create, written, sentence) -> None:
    """Whoever mistypes learns what was expected and where, before anything is stored."""
    with pytest.raises(LocalClusterError) as refusal:
        create(written, "--dry-run=server")
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
    "schedule by name": machine(snapshotPolicy={"schedule": "@daily", "timeZone": "Europe/Vienna"}),
    "share of machines": machine(updateStrategy={"rollingUpdate": {"maxUnavailable": "25%"}}),
    "hook by http": vm(lifecycle={"preStop": {"httpGet": {"port": "web", "path": "/drain"}}}),
    "tolerate all": vm(tolerations=[{"operator": "Exists"}]),
    "host with delays": host(simulation__delays={"create": "1h30m", "stop": "500ms", "start": "0"}),
    "host with overcommit": host(overcommit={"cpu": 4, "memory": 1.5}),
}


@pytest.mark.parametrize("written", GOOD.values(), ids=GOOD)
def test_good_input_is_accepted_and_can_be_read(create, written) -> None:
    """Whatever the server admits, the operator's own types can parse."""
    kept = create(written, "--dry-run=server")
    types: dict[str, type[CustomResource]] = {"VirtualMachine": VirtualMachine, "Host": Host}
    assert types[kept["kind"]].model_validate(kept).metadata.name == written["metadata"]["name"]


@pytest.mark.parametrize("name", [*NAMES, Gadget.__kind__.full_name])
def test_definitions_are_established_and_structural(plane, name) -> None:
    """The server serves them and has no complaint about their schemas."""
    conditions = json.loads(plane.kubectl("get", "crd", name, "-o", "json"))["status"]["conditions"]
    found = {condition["type"]: condition["status"] for condition in conditions}
    assert found["Established"] == "True"
    assert found.get("NonStructuralSchema", "False") == "False"


def test_the_manifest_of_the_specification_applies_verbatim(plane, namespace) -> None:
    """Every field of it is known, its status included, nulls and all."""
    text = SPECIFIED.read_text(encoding="utf-8").replace("namespace: default", f"namespace: {namespace}")
    plane.kubectl("apply", "--validate=strict", "-f", "-", input=text)
    plane.kubectl("apply", "--validate=strict", "-f", "-", input=text)
    status = {"status": yaml.safe_load(text)["status"]}
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps(status, default=str))
    plane.kubectl("patch", "-n", namespace, "vm.novacron.io/example-vm", *patch)
    kept = json.loads(
        plane.kubectl("get", "-n", namespace, "vm.novacron.io/example-vm", "-o", "json")
    )
    wanted = yaml.safe_load(text)
    assert kept["spec"]["template"] == wanted["spec"]["template"]
    assert kept["status"]["resources"] == wanted["status"]["resources"]
    assert kept["status"]["migration"] == {"targetNode": "", "progress": 0}
    machine_read = VirtualMachine.model_validate(kept)
    assert machine_read.status is not None
    assert machine_read.status.node_name == "node-01"


def test_defaults_are_filled_in_by_the_server(create) -> None:
    """They appear without any webhook, so that they hold even while the operator is away."""
    spec = create(network())["spec"]
    assert spec["running"] is True
    assert spec["migrationPolicy"] == {
        "allowLiveMigration": True,
        "compression": True,
        "encrypted": False,
    }
    assert spec["updateStrategy"] == {"type": "RollingUpdate"}
    template = spec["template"]["spec"]
    assert template["resources"] == {"cpu": 1, "memory": "512Mi", "disk": "10Gi"}
    assert template["networks"] == [{"name": "net", "type": "bridge"}]


def test_a_migration_policy_written_in_part_is_completed(create) -> None:
    """Defaults reach into objects that are there."""
    spec = create(machine(migrationPolicy={"encrypted": True}))["spec"]
    assert spec["migrationPolicy"] == {
        "allowLiveMigration": True,
        "compression": True,
        "encrypted": True,
    }


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


def test_columns_of_machines(plane, namespace, create) -> None:
    """What kubectl get vm shows at a glance, and what -o wide adds."""
    create(machine())
    status = {
        "phase": "Running",
        "nodeName": "node-7",
        "ipAddresses": ["10.1.2.3"],
        "vmID": "sim-1",
        "conditions": [{"type": "Ready", "status": "True", "reason": "VMReady"}],
    }
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    plane.kubectl("patch", "-n", namespace, "vms.novacron.io/vm", *patch)
    header, row = plane.kubectl("get", "vm.novacron.io", "-n", namespace).splitlines()
    assert header.split() == ["NAME", "PHASE", "NODE", "IP", "AGE"]
    assert row.split()[:4] == ["vm", "Running", "node-7", "10.1.2.3"]
    header, row = plane.kubectl("get", "vm.novacron.io", "-n", namespace, "-o", "wide").splitlines()
    assert header.split()[5:] == ["CPU", "MEMORY", "IMAGE", "REASON", "VM", "ID"]
    assert row.split()[5:] == ["1", "512Mi", "builtin://tiny", "VMReady", "sim-1"]


def test_columns_of_hosts(plane, namespace, create) -> None:
    """Hosts are cluster-scoped and found by their full and their short name."""
    create(host(namespace, unschedulable=True))
    amounts = {"cpu": 8, "memory": "16Gi", "disk": "1Ti"}
    status = {"capacity": amounts, "allocatable": amounts, "machines": 3, "conditions": [
        {"type": "Ready", "status": "True", "reason": "Reached", "observedGeneration": 1}
    ]}  # fmt: skip
    patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    plane.kubectl("patch", f"hosts.novacron.io/{namespace}", *patch)
    header, row = plane.kubectl("get", f"nvhost/{namespace}").splitlines()
    assert header.split() == [
        "NAME", "DRIVER", "READY", "CPU", "MEMORY", "MACHINES", "CORDONED", "AGE",
    ]  # fmt: skip
    assert row.split()[1:7] == ["simulation", "True", "8", "16Gi", "3", "true"]


def test_the_schema_explains_itself(plane) -> None:
    """kubectl explain shows the words written beside the types."""
    said = plane.kubectl("explain", "vm.spec.running", "--api-version=novacron.io/v1alpha1")
    assert "Whether the machine is to run." in said


def test_appliers_share_lists_by_name(plane, namespace) -> None:
    """Two managers own a network each; neither removes the other's."""
    for manager, name in (("ann", "red"), ("bob", "blue")):
        text = json.dumps(vm(networks=[{"name": name}]))
        flags = ("--server-side", f"--field-manager={manager}", "-n", namespace)
        plane.kubectl("apply", *flags, "-f", "-", input=text)
    kept = json.loads(plane.kubectl("get", "-n", namespace, "vm.novacron.io/vm", "-o", "json"))
    networks = kept["spec"]["template"]["spec"]["networks"]
    assert {entry["name"] for entry in networks} == {"red", "blue"}


def gadget(version: str = "v2", **spec: Any) -> Object:
    return {
        "apiVersion": f"test.novacron.io/{version}",
        "kind": "Gadget",
        "metadata": {"name": "gadget"},
        "spec": spec,
    }


def test_every_form_of_field_works_on_the_server(create) -> None:
    """What the generator writes is defaulted, kept and checked as meant."""
    spec = create(gadget(free={"any": ["thing"]}, port="web", items=[{"name": "a"}]))["spec"]
    assert spec["free"] == {"any": ["thing"]}
    assert spec["items"] == [{"name": "a", "note": "y"}]
    assert (spec["size"], spec["seen"], spec["share"]) == ("1Gi", 0, 0.5)
    assert spec["first"] == {"name": "a", "note": "y"}


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"tags": ["a", "a"]}, "Duplicate value"),
        ({"share": 1}, "should be less than 1"),
        ({"seen": "x"}, "should match"),
        ({"colour": "blue"}, 'supported values: "red"'),
        ({"first": {"name": "x"}}, "x is taken"),
        ({"since": "yesterday"}, "must be of type date-time"),
    ],
)
def test_every_form_of_field_is_checked_by_the_server(create, spec, sentence) -> None:
    """A marker that the server ignored would check nothing."""
    with pytest.raises(LocalClusterError) as refusal:
        create(gadget(**deepcopy(spec)), "--dry-run=server")
    assert sentence in str(refusal.value)


def test_two_served_versions_show_one_object(plane, namespace, create) -> None:
    """Written in the older version, read in the newer; the stored one is neither's business."""
    create(gadget("v1", replicas=2))
    read = ("get", "-n", namespace, "-o", "json")
    newer = json.loads(plane.kubectl(*read, "gadgets.v2.test.novacron.io", "gadget"))
    older = json.loads(plane.kubectl(*read, "gadgets.v1.test.novacron.io", "gadget"))
    assert newer["apiVersion"] == "test.novacron.io/v2"
    assert older["apiVersion"] == "test.novacron.io/v1"
    assert newer["spec"] == older["spec"]
    assert newer["spec"]["replicas"] == 2


def test_the_scale_subresource_changes_the_wanted_count(plane, namespace, create) -> None:
    """kubectl scale and autoscalers need to know nothing of the kind."""
    create(gadget(replicas=1))
    plane.kubectl("scale", "-n", namespace, "gadgets.test.novacron.io/gadget", "--replicas=3")
    path = f"/apis/test.novacron.io/v2/namespaces/{namespace}/gadgets/gadget/scale"
    scale = json.loads(plane.kubectl("get", "--raw", path))
    assert scale["spec"]["replicas"] == 3
