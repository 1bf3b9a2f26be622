"""How large a Machine is: the specification's templates, overrides and examples, to the letter."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from novacron.core.errors import Rejected
from novacron.families.viti.sizing import size_of
from novacron.families.viti.values import Cpu, Disk, Topology

EXAMPLES = Path(__file__).parents[3] / "examples"
GIB = 1024
HUGE: dict[str, Any] = {
    "cpu": {"cores": 8, "sockets": 0, "threads": 2},
    "memory": {"quantity": "64Gi", "minQuantity": "32Gi", "maxQuantity": "128Gi"},
    "disks": [{"name": "root", "size": "200Gi", "storageClass": "fast"}],
}
BARE: dict[str, Any] = {"cpu": {"cores": 2}, "memory": {"quantity": "2Gi"}}


def root(gib: int, storage_class: str | None = "default") -> Disk:
    return Disk("root", gib * GIB, storage_class, boot=True)


def example(name: str) -> dict[str, Any]:
    """Return the spec of the Machine in a file of examples."""
    (found,) = [
        each
        for each in yaml.safe_load_all((EXAMPLES / name).read_text())
        if each["kind"] == "Machine"
    ]
    return dict(found["spec"])


@pytest.mark.parametrize(
    ("template", "cores", "memory", "disk"),
    [("small", 1, 2, 20), ("medium", 2, 4, 40), ("large", 4, 8, 80)],
)
def test_templates_are_those_of_the_specification(template, cores, memory, disk) -> None:
    """One socket, one thread per core, one disk called root on the class called default."""
    size = size_of({"template": template}, {})
    assert size.cpu == Cpu(cores, threads=1, sockets=1)
    assert size.memory_mib == memory * GIB
    assert size.disks == (root(disk),)
    assert size.template == template


def test_overrides_replace_what_they_name_and_nothing_else() -> None:
    """The specification's own figures: 4 cores, 8Gi, and the template's 40Gi of disk."""
    spec = {"template": "medium", "resources": {"cpu": {"cores": 4}, "memory": {"size": "8Gi"}}}
    size = size_of(spec, {})
    assert (size.cpu.total, size.memory_mib, size.disks) == (4, 8 * GIB, (root(40),))


def test_the_example_with_overrides_has_the_templates_disk_and_its_own() -> None:
    """custom-vm: root of small, 20Gi, and data of 100Gi."""
    size = size_of(example("51-machine-overrides.yaml"), {})
    assert size.cpu.total == 4
    assert size.memory_mib == 8 * GIB
    assert size.disks == (root(20), Disk("data", 100 * GIB, "fast-ssd"))


def test_threads_and_sockets_are_overridden_one_by_one() -> None:
    """Whoever asks for two sockets keeps the cores of the template."""
    size = size_of({"template": "large", "resources": {"cpu": {"sockets": 2}}}, {})
    assert size.cpu == Cpu(cores=4, threads=1, sockets=2)
    assert size.cpu.total == 8


@pytest.mark.parametrize(
    ("cpu", "topology"),
    [
        (Cpu(4), Topology(sockets=4, cores=1, threads=1)),
        (Cpu(1), Topology(sockets=1, cores=1, threads=1)),
        (Cpu(4, sockets=2), Topology(sockets=2, cores=4, threads=1)),
        (Cpu(2, threads=2), Topology(sockets=1, cores=2, threads=2)),
    ],
)
def test_plain_cores_become_sockets(cpu, topology) -> None:
    """Sockets are all that KubeVirt adds to a running guest; a topology asked for is kept."""
    assert cpu.topology == topology
    assert topology.sockets * topology.cores * topology.threads == cpu.total


def test_a_class_is_a_template_and_zero_means_one() -> None:
    """Upstream writes 0 where it says nothing."""
    size = size_of({"template": "huge"}, {"huge": HUGE})
    assert size.cpu == Cpu(cores=8, threads=2, sockets=1)
    assert size.memory_mib == 64 * GIB
    assert size.disks == (root(200, "fast"),)


def test_upstreams_words_say_the_same() -> None:
    """machineClass, cpu, memory in bytes, sizeGB."""
    spec = {
        "machineClass": "huge",
        "cpu": {"cores": 4, "threadsPerCore": 1},
        "memory": 34359738368,
        "disks": [{"name": "root", "sizeGB": 300, "type": "sata"}],
    }
    size = size_of(spec, {"huge": HUGE})
    assert size.cpu == Cpu(cores=4, threads=1, sockets=1)
    assert size.memory_mib == 32 * GIB
    assert size.disks == (Disk("root", 300 * GIB, "fast", bus="sata", boot=True),)


def test_a_built_in_template_is_the_same_everywhere_and_a_class_of_its_name_is_for_upstream() -> (
    None
):
    """Upstream's examples have a MachineClass small of two cores; both kinds of manifest hold."""
    classes = {"small": BARE}
    assert size_of({"template": "small"}, classes).cpu.total == 1
    assert size_of({"machineClass": "small"}, classes).cpu.total == 2
    assert size_of({"machineClass": "small"}, {}).cpu.total == 1


def test_a_class_without_disks_gives_one_of_10gi_to_machines_that_list_none() -> None:
    """As upstream does; a machine that lists some has those."""
    assert size_of({"template": "bare"}, {"bare": BARE}).disks == (root(10, None),)
    own = {"template": "bare", "disks": [{"name": "data", "size": "1Gi"}]}
    assert size_of(own, {"bare": BARE}).disks == (Disk("data", GIB, boot=True),)


def test_machines_that_name_nothing_have_the_default_class_or_say_all_themselves() -> None:
    """Without either, nobody guesses."""
    assert size_of({}, {"huge": HUGE, "bare": BARE | {"default": True}}).template == "bare"
    whole = {"resources": {"cpu": {"cores": 3}, "memory": {"size": "3Gi"}}}
    assert size_of(whole, {"huge": HUGE}).cpu.total == 3
    assert size_of(whole, {}).disks == (root(10, None),)


DISABLED = BARE | {"enabled": False}
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str, str]] = {
    "unknown": ({"template": "tiny"}, {}, "TemplateNotFound", "there is no template tiny"),
    "unknown class": ({"machineClass": "t3"}, {}, "TemplateNotFound", "create a MachineClass"),
    "disabled": ({"template": "x"}, {"x": DISABLED}, "TemplateNotFound", "is disabled"),
    "disabled small": ({"machineClass": "small"}, {"small": DISABLED}, "TemplateNotFound", "disab"),
    "for others": (
        {"template": "x"},
        {"x": BARE | {"machineProviders": ["proxmox"]}},
        "TemplateNotFound",
        "is for proxmox only",
    ),
    "gpu": ({"template": "x"}, {"x": BARE | {"gpu": {"cores": 1}}}, "TemplateNotFound", "a GPU"),
    "nothing": ({}, {"x": BARE}, "TemplateNotFound", "nothing says how large"),
    "memory alone": (
        {"resources": {"memory": {"size": "1Gi"}}},
        {},
        "TemplateNotFound",
        "nothing says how large",
    ),
    "two defaults": (
        {},
        {"b": BARE | {"default": True}, "a": BARE | {"default": True}},
        "TemplateNotFound",
        "MachineClasses a, b are all the default",
    ),
    "too little memory": (
        {"template": "huge", "memory": 2**30},
        {"huge": HUGE},
        "MemoryOutOfRange",
        "ask for at least 32Gi",
    ),
    "too much memory": (
        {"template": "huge", "resources": {"memory": {"size": "129Gi"}}},
        {"huge": HUGE},
        "MemoryOutOfRange",
        "ask for at most 128Gi",
    ),
    "disk of no size": (
        {"template": "huge", "disks": [{"name": "data"}]},
        {"huge": HUGE},
        "DiskSizeMissing",
        "disk data has no size",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("spec", "classes", "reason", "words"), REFUSED.values(), ids=REFUSED)
def test_what_only_the_cluster_can_tell_is_refused_with_a_reason(
    spec, classes, reason, words
) -> None:
    """The reason is the specification's error type, the message says what to do."""
    with pytest.raises(Rejected, match=words) as refusal:
        size_of(spec, classes)
    assert refusal.value.reason == reason


def test_machines_that_are_there_keep_a_class_that_was_disabled() -> None:
    """Disabling is for those to come."""
    assert size_of({"template": "x"}, {"x": DISABLED}, new=False).cpu.total == 2
