"""The list of images, for users who may do no more than have machines."""

import json
import os
import subprocess
import sys
from uuid import uuid4

from novacron.localcluster.controlplane import ControlPlane
from service_accounts import kubeconfig_of


def test_who_may_not_read_what_the_cluster_adds_sees_what_comes_with_us(
    plane: ControlPlane,
) -> None:
    """Their machines have these images all the same, and rights to a ConfigMap are no user's."""
    user = f"user-{uuid4().hex[:8]}"
    plane.kubectl("create", "serviceaccount", user, "--namespace", "default")
    environment = {**os.environ, "KUBECONFIG": str(kubeconfig_of(plane, "default", user))}
    command = [sys.executable, "-m", "novacron.app.entry", "image", "list", "-o", "json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "debian-12" in {each["name"] for each in json.loads(done.stdout)["images"]}
    assert "note: what the cluster itself adds is not shown" in done.stderr
    assert "ConfigMap novacron-images may not be read" in done.stderr
