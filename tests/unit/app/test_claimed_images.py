"""Which file of a host a claim of the cluster is."""

from typing import Any, cast

import pytest

from novacron.app.claimed_images import CLAIMS, VOLUMES, ClaimedImages, file_on
from novacron.app.libvirt import libvirt_driver
from novacron.app.settings import Settings
from novacron.core.errors import Rejected
from novacron.core.host import DeclaredHost
from novacron.core.machine import MachinePlan, MachineRef, Resources
from novacron.images import HostFile, Locate
from novacron.runtime.client import Client
from novacron.runtime.errors import Forbidden
from novacron.runtime.resource import Object, Resource

SOURCE = "pvc://ns/claim"
ON_NODE_A = {
    "required": {
        "nodeSelectorTerms": [
            {
                "matchExpressions": [
                    {"key": "kubernetes.io/hostname", "operator": "In", "values": ["a"]}
                ]
            }
        ]
    }
}


@pytest.mark.parametrize(
    ("spec", "path", "found"),
    [
        ({"hostPath": {"path": "/srv/v/"}}, "disk.img", HostFile("/srv/v", "disk.img", SOURCE)),
        ({"local": {"path": "/srv/v"}}, "a/b.raw", HostFile("/srv/v/a", "b.raw", SOURCE)),
        (
            {"nfs": {"server": "nfs.local", "path": "/export"}},
            "a/b.raw",
            HostFile("/export/a", "b.raw", SOURCE, "nfs.local"),
        ),
        (
            {"local": {"path": "/v"}, "nodeAffinity": ON_NODE_A},
            "disk.img",
            HostFile("/v", "disk.img", SOURCE),
        ),
    ],
)
def test_directories_of_a_host_or_a_server(
    spec: dict[str, Any], path: str, found: HostFile
) -> None:
    """What the host's own daemon can open."""
    assert file_on(SOURCE, spec, path, "a") == found


@pytest.mark.parametrize(
    ("spec", "node", "words"),
    [
        ({"csi": {"driver": "ebs.csi.aws.com"}}, None, r"of type csi \(ebs.csi.aws.com\)"),
        ({"iscsi": {}, "capacity": {"storage": "1Gi"}}, None, "of type iscsi; a host reads"),
        ({"local": {"path": "/v"}, "volumeMode": "Block"}, None, "block device"),
        ({"local": {"path": "/v"}, "nodeAffinity": ON_NODE_A}, "b", "is on node a, but this host"),
    ],
)
def test_what_no_host_can_read_says_why(spec: dict[str, Any], node: str | None, words: str) -> None:
    """By its type, its mode, or the node that it is on."""
    with pytest.raises(Rejected, match=words) as refusal:
        file_on(SOURCE, spec, "disk.img", node)
    assert refusal.value.reason == "VolumeUnusable"


class Cluster:
    """A cluster with one claim, whose volume is on one node."""

    async def get(self, kind: Resource, *_: object) -> Object:
        if kind == VOLUMES:
            return {"spec": {"local": {"path": "/v"}, "nodeAffinity": ON_NODE_A}}
        return {"spec": {"volumeName": "volume"}, "status": {"phase": "Bound"}}


async def test_a_host_reads_the_claims_of_the_node_that_it_is_declared_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another node has a directory of that name too, and in it whatever it likes."""
    finders: list[Locate] = []
    driver = "novacron.drivers.libvirt.LibvirtDriver"
    monkeypatch.setattr(driver, lambda *each: finders.append(each[1]))
    settings = Settings(image_claim_namespaces=("ns",))
    for node in ("a", "b"):
        host = DeclaredHost("uid", "host", "libvirt", "qemu:///system", node=node)
        libvirt_driver(host, settings, cast("Client", Cluster()))
    plan = MachinePlan(MachineRef("uid", "ns", "vm", "host"), Resources(1, 512, 1024), SOURCE)
    here, elsewhere = finders
    assert (await here(plan)).place == HostFile("/v", "disk.img", SOURCE)
    with pytest.raises(Rejected, match="is on node a, but this host is node b"):
        await elsewhere(plan)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (CLAIMS, "the right to get persistentvolumeclaims in namespace ns$"),
        (VOLUMES, "the right to get persistentvolumes$"),
    ],
)
async def test_a_right_that_the_operator_lacks_is_no_silence_of_a_host(
    kind: Resource, words: str
) -> None:
    """Its owner would look for what is wrong there, and only an administrator can mend it."""

    class Closed(Cluster):
        async def get(self, asked: Resource, *_: object) -> Object:
            if asked == kind:
                raise Forbidden("no")
            return await super().get(asked)

    settings = Settings(image_shared_namespaces=("ns",))
    images = ClaimedImages(settings, cast("Client", Closed()))
    with pytest.raises(Rejected, match=words) as refusal:
        await images.find(SOURCE, "other")
    assert refusal.value.reason == "ClaimForbidden"
    assert refusal.value.again, "a role is given without a word to the machine"
