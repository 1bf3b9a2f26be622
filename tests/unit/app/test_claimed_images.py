"""Which file of a host a claim of the cluster is."""

from typing import Any

import pytest

from novacron.app.claimed_images import file_on
from novacron.core.errors import Rejected
from novacron.images import HostFile

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
