"""What this node can run and what it cannot, told before anything is tried. Pure."""

from collections.abc import Iterator
from typing import NamedTuple

from novacron.localcluster.node.image import OwnImage
from novacron.runtime.resource import Object

__all__ = ["Refusal", "refusals"]

VOLUMES = ("secret", "configMap", "emptyDir", "downwardAPI", "projected", "hostPath")
PROJECTED = ("secret", "configMap", "downwardAPI", "serviceAccountToken")
POD_FIELDS = ("hostPID", "hostIPC", "shareProcessNamespace", "activeDeadlineSeconds")
CONTAINER_FIELDS = ("lifecycle", "volumeDevices")
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")
HANDLERS = ("httpGet", "tcpSocket", "exec")


class Refusal(NamedTuple):
    """Why a container does not run: a word and a sentence."""

    reason: str
    message: str


def refusals(pod: Object, image: OwnImage) -> dict[str, Refusal]:
    """Return for every container of a pod why it does not run; empty when all can."""
    spec = pod["spec"]
    containers = (*(spec.get("initContainers") or ()), *spec["containers"])
    foreign = {each["name"]: each["image"] for each in containers if not _is_ours(each, image)}
    if foreign:
        return {each["name"]: _foreign(foreign, each["name"], image) for each in containers}
    unknown = sorted({*_in_pod(spec), *(what for each in containers for what in _in(each))})
    for each in spec.get("initContainers") or ():
        if each.get("restartPolicy"):
            unknown.append(f"restartPolicy of init container {each['name']}")
    if not unknown:
        return {}
    message = f"this development node does not know {', '.join(unknown)}; leave it out"
    return {each["name"]: Refusal("NotSupportedHere", message) for each in containers}


def _is_ours(container: Object, image: OwnImage) -> bool:
    return image.is_meant_by(container["image"])


def _foreign(foreign: dict[str, str], name: str, image: OwnImage) -> Refusal:
    which = foreign.get(name) or next(iter(foreign.values()))
    message = (
        f"this development node has no container engine: it runs only pods of "
        f"{image.repository}, as local processes, and cannot run {which}; "
        f"use a real cluster for it"
    )
    return Refusal("NotOurImage", message)


def _in_pod(spec: Object) -> Iterator[str]:
    yield from (field for field in POD_FIELDS if spec.get(field))
    for volume in spec.get("volumes") or ():
        kinds = [kind for kind in volume if kind != "name"]
        yield from (f"{kind} volumes" for kind in kinds if kind not in VOLUMES)
        for source in (volume.get("projected") or {}).get("sources") or ():
            yield from (f"projected {kind}" for kind in source if kind not in PROJECTED)


def _in(container: Object) -> Iterator[str]:
    yield from (field for field in CONTAINER_FIELDS if container.get(field))
    if (container.get("securityContext") or {}).get("privileged"):
        yield "privileged"
    if any(mount.get("subPathExpr") for mount in container.get("volumeMounts") or ()):
        yield "subPathExpr"
    for field in PROBES:
        probe = container.get(field)
        if probe and not any(handler in probe for handler in HANDLERS):
            yield f"{field} by other means than {', '.join(HANDLERS)}"
