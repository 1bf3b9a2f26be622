"""The files of a volume: which there are, what is in them, and their modes.

Pure: where Secrets, ConfigMaps and tokens come from is given.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from novacron.localcluster.node.environment import CONFIG_MAPS, Lookup, Unmet, data_of
from novacron.localcluster.node.fields import field_value, resource_value
from novacron.runtime.resource import SECRETS, Object, Resource

__all__ = ["File", "Payload", "TokenWish", "references", "token_wishes"]

DEFAULT_MODE = 0o644
DEFAULT_TOKEN_SECONDS = 3600
SOURCES = {"secret": SECRETS, "configMap": CONFIG_MAPS}


class File(NamedTuple):
    """What one file of a volume holds."""

    content: bytes
    mode: int


class TokenWish(NamedTuple):
    """A token of the pod's service account that a volume asks for."""

    audience: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Payload:
    """Makes the files of one pod's volumes."""

    pod: Object
    lookup: Lookup
    token: Callable[[TokenWish], str]
    allocatable: Mapping[str, str]

    def of(self, volume: Object) -> dict[str, File]:
        """Return the files of a volume by their paths."""
        for kind in ("secret", "configMap", "downwardAPI"):
            if kind in volume:
                return self._part(kind, volume[kind], _mode(volume[kind]))
        projected = volume["projected"]
        files: dict[str, File] = {}
        for source in projected.get("sources") or ():
            for kind, part in source.items():
                files |= self._part(kind, part, _mode(projected))
        return files

    def _part(self, kind: str, part: Object, mode: int) -> dict[str, File]:
        if kind in SOURCES:
            return self._keys(SOURCES[kind], part, mode)
        if kind == "downwardAPI":
            return {
                item["path"]: File(self._item(item).encode(), item.get("mode", mode))
                for item in part.get("items") or ()
            }
        return {part["path"]: File(self.token(_wish(part)).encode(), mode)}

    def _item(self, item: Object) -> str:
        if reference := item.get("fieldRef"):
            return field_value(self.pod, reference["fieldPath"])
        reference = item["resourceFieldRef"]
        named = reference["containerName"]
        containers: Sequence[Object] = self.pod["spec"]["containers"]
        container = next((each for each in containers if each["name"] == named), {})
        return resource_value(container, reference, self.allocatable)

    def _keys(self, resource: Resource, part: Object, mode: int) -> dict[str, File]:
        name = _name(resource, part)
        found = self.lookup(resource, name)
        if found is None and not part.get("optional"):
            raise Unmet(f"{resource.kind} {name} does not exist")
        data = data_of(resource, found) if found is not None else {}
        if not (items := part.get("items")):
            return {key: File(value, mode) for key, value in data.items()}
        absent = [item["key"] for item in items if item["key"] not in data]
        if absent and not part.get("optional"):
            raise Unmet(f"{resource.kind} {name} has no key {', '.join(absent)}")
        return {
            item["path"]: File(data[item["key"]], item.get("mode", mode))
            for item in items
            if item["key"] in data
        }


def references(pod: Object) -> set[tuple[Resource, str]]:
    """Return every Secret and ConfigMap that a pod refers to."""
    found: set[tuple[Resource, str]] = set()
    for kind, part in _parts(pod):
        if kind in SOURCES:
            found.add((SOURCES[kind], _name(SOURCES[kind], part)))
    spec = pod["spec"]
    for container in (*(spec.get("initContainers") or ()), *spec["containers"]):
        for source in container.get("envFrom") or ():
            found |= _named(source, "Ref")
        for entry in container.get("env") or ():
            found |= _named(entry.get("valueFrom") or {}, "KeyRef")
    return found


def token_wishes(pod: Object) -> set[TokenWish]:
    """Return every token that a pod's volumes ask for."""
    return {_wish(part) for kind, part in _parts(pod) if kind == "serviceAccountToken"}


def _parts(pod: Object) -> list[tuple[str, Object]]:
    parts: list[tuple[str, Object]] = []
    for volume in pod["spec"].get("volumes") or ():
        parts += [(kind, part) for kind, part in volume.items() if kind in SOURCES]
        for source in (volume.get("projected") or {}).get("sources") or ():
            parts += source.items()
    return parts


def _named(source: Object, suffix: str) -> set[tuple[Resource, str]]:
    pairs = ((SECRETS, f"secret{suffix}"), (CONFIG_MAPS, f"configMap{suffix}"))
    return {(resource, source[field]["name"]) for resource, field in pairs if field in source}


def _name(resource: Resource, part: Object) -> str:
    # A volume names its Secret otherwise than everything else does.
    return str(part["secretName"] if resource == SECRETS and "secretName" in part else part["name"])


def _wish(part: Object) -> TokenWish:
    seconds = part.get("expirationSeconds") or DEFAULT_TOKEN_SECONDS
    return TokenWish(part.get("audience") or "", seconds)


def _mode(part: Object) -> int:
    mode = part.get("defaultMode")
    return DEFAULT_MODE if mode is None else int(mode)
