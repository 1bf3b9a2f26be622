"""How the node's agent is started: its flags, its certificate and the network of its pods."""

import hashlib
import os
import sys
from datetime import timedelta
from pathlib import Path

from novacron.localcluster.code_version import code_version
from novacron.localcluster.layout import Layout
from novacron.localcluster.node.subnet import choose
from novacron.localcluster.pki import Authority
from novacron.localcluster.ports import LOOPBACK
from novacron.localcluster.processes import Program
from novacron.workplace.files import private_directory

__all__ = ["IMAGE_VARIABLE", "NODE_GRACE", "node_program"]

IMAGE_VARIABLE = "NOVACRON_IMAGE"
IMAGE = "novacron/novacron"
# The agent gives pods 10 s to end.
NODE_GRACE = timedelta(seconds=20)


def node_program(layout: Layout, authority: Authority, kubeconfig: Path, port: int) -> Program:
    """Return the program that runs pods on this machine."""
    subnet = choose(private_directory(layout.node))
    serving = authority.server("node-server", [LOOPBACK, str(subnet.gateway.ip)])
    flags = (
        f"--directory={layout.node}",
        f"--kubeconfig={kubeconfig}",
        f"--image={os.environ.get(IMAGE_VARIABLE) or IMAGE}",
        f"--port={port}",
        f"--subnet={subnet.network}",
        f"--bridge={subnet.bridge}",
        f"--certificate={serving.certificate}",
        f"--key={serving.key}",
        f"--authority={authority.pair.certificate}",
    )
    python = (sys.executable, "-m")
    supervised = (*python, "novacron.localcluster.supervise")
    # Both are read once, when it starts; and its pods run our own code.
    read = serving.certificate.read_bytes() + kubeconfig.read_bytes()
    return Program(
        "node",
        (*supervised, *python, "novacron.localcluster.node", *flags),
        version=code_version() + hashlib.sha256(read).hexdigest(),
        grace=NODE_GRACE,
    )
