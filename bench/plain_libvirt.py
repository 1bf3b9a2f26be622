"""A peer for what many machines at once cost: the same domains by libvirt's Python binding alone.

A process of its own, with a thread for each host, makes what our machines are made of: a first disk
over the image, a seed with the same bytes, the definition; and starts it. Nothing is declared,
placed, watched or written down.
"""

import base64
import json
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from xml.etree import ElementTree as ET

import libvirt

from novacron.drivers.libvirt.pool import read_volume

__all__ = ["PREFIX", "bare_definition", "by_the_binding", "model_of"]

PREFIX = "plain-"
POOL = "novacron"
OF_LIBVIRT = ("key", "allocation", "physical")


def model_of(connection: libvirt.virConnect, domain: libvirt.virDomain) -> dict[str, str]:
    """Return all that is needed to make a domain like this one of ours again on its host."""
    pool = connection.storagePoolLookupByName(POOL)
    uid = domain.UUIDString()
    (seed,) = (name for name in pool.listVolumes() if name.startswith(f"{uid}-seed-"))
    volume = pool.storageVolLookupByName(seed)
    return {
        "uri": connection.getURI(),
        "uid": uid,
        "name": domain.name(),
        "xml": domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE),
        "root": bare_definition(pool.storageVolLookupByName(f"{uid}-root.qcow2")),
        "seed": bare_definition(volume),
        "bytes": base64.b64encode(read_volume(volume)).decode(),
    }


def by_the_binding(models: Sequence[dict[str, str]], count: int) -> float:
    """Make so many domains like these in turn; return the CPU milliseconds for each."""
    done = subprocess.run(
        [sys.executable, "-m", __spec__.name],
        input=json.dumps({"models": models, "count": count}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return float(done.stdout)


def bare_definition(volume: libvirt.virStorageVol) -> str:
    """Return the XML by which another volume like this one is made."""
    tree = ET.fromstring(volume.XMLDesc())
    for tag in OF_LIBVIRT:
        if (found := tree.find(tag)) is not None:
            tree.remove(found)
    return ET.tostring(tree, encoding="unicode")


def _make(connection: libvirt.virConnect, model: dict[str, str], numbers: Sequence[int]) -> None:
    pool = connection.storagePoolLookupByName(POOL)
    content = base64.b64decode(model["bytes"])
    for number in numbers:
        uid = str(uuid.uuid4())
        root, seed, xml = (
            model[part].replace(model["uid"], uid) for part in ("root", "seed", "xml")
        )
        pool.createXML(root)
        volume = pool.createXML(seed)
        stream = connection.newStream()
        volume.upload(stream, 0, 0)
        stream.send(content)
        stream.finish()
        name = f"<name>{PREFIX}{number}</name>"
        connection.defineXML(xml.replace(f"<name>{model['name']}</name>", name)).createWithFlags(0)


def main() -> None:
    """Read what to make, make it, and print what each took."""
    asked: dict[str, Any] = json.load(sys.stdin)
    models, count = asked["models"], asked["count"]
    connections = [libvirt.open(model["uri"]) for model in models]
    begun = time.process_time()
    with ThreadPoolExecutor(len(models)) as threads:
        shares = [range(number, count, len(models)) for number in range(len(models))]
        list(threads.map(_make, connections, models, shares))
    print((time.process_time() - begun) * 1000 / count)


if __name__ == "__main__":
    main()
