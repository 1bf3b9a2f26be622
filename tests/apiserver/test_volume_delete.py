"""Volumes are deleted from where the command is called, which has to have a way to their host."""

import os
import subprocess
import sys
from uuid import uuid4

import pytest

from api import Api
from machines import host


@pytest.mark.parametrize(
    ("endpoint", "told"),
    [
        (
            "qemu:///system?socket=/nowhere/libvirt-sock",
            "/nowhere/libvirt-sock is a socket on the operator's own machine: call this there",
        ),
        ("qemu+tls://127.0.0.1:1/system", "cannot be reached: "),
    ],
)
def test_who_has_no_way_to_the_host_of_a_volume_is_told_from_where_to_call(
    api: Api, endpoint: str, told: str
) -> None:
    """It works for whoever sits on that machine, so nobody would guess why not for others."""
    name = f"host-{uuid4().hex[:8]}"
    declared = host(name)
    declared["spec"] = {"driver": "libvirt", "endpoint": endpoint}
    api.create(declared)
    kept = [{"namespace": "default", "id": "db.data-1a2b3c4d", "size": "1Gi"}]
    path = f"/apis/novacron.io/v1alpha1/hosts/{name}/status"
    api.call("PATCH", path, {"status": {"keptVolumes": kept}}, merge=True)
    command = [sys.executable, "-m", "novacron.app.entry", "volume", "delete", "db.data-1a2b3c4d"]
    done = subprocess.run(
        [*command, "--yes", "--namespace", "default"],
        env={**os.environ, "KUBECONFIG": str(api.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    api.delete_host(name)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"host {name} cannot be reached" in last
    assert told in last
    assert last.endswith("call this there") == ("socket" in told)
