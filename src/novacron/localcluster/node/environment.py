"""The environment variables of a container, and what is written as ``$(NAME)`` in its command.

Pure: where Secrets and ConfigMaps come from is given.
"""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from novacron.localcluster.node.fields import field_value, resource_value
from novacron.runtime.resource import SECRETS, Object, Resource

__all__ = ["CONFIG_MAPS", "Lookup", "Unmet", "Variables", "data_of", "expand"]

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")

# Returns an object of the pod's namespace by its name, or None when there is none.
Lookup = Callable[[Resource, str], Object | None]

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


class Unmet(Exception):
    """What the pod asks for is not there (yet), or cannot be; the message says what."""


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace ``$(NAME)`` where NAME is known; ``$$`` stands for one ``$``."""

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        return "$" if name is None else variables.get(name, match[0])

    return _REFERENCE.sub(replaced, text)


def data_of(resource: Resource, obj: Object) -> dict[str, bytes]:
    """Return what a Secret or a ConfigMap holds."""
    if resource == SECRETS:
        return {key: base64.b64decode(value) for key, value in (obj.get("data") or {}).items()}
    binary = {key: base64.b64decode(v) for key, v in (obj.get("binaryData") or {}).items()}
    return {key: value.encode() for key, value in (obj.get("data") or {}).items()} | binary


@dataclass(frozen=True, slots=True)
class Variables:
    """Makes the variables of one pod's containers."""

    pod: Object
    lookup: Lookup
    allocatable: Mapping[str, str]

    def of(self, container: Object, given: Mapping[str, str]) -> dict[str, str]:
        """Return the variables of a container; what is given comes first and can be replaced."""
        variables = dict(given)
        for source in container.get("envFrom") or ():
            variables |= self._all_of(source)
        for entry in container.get("env") or ():
            if "valueFrom" not in entry:
                variables[entry["name"]] = expand(entry.get("value") or "", variables)
            elif (value := self._value(container, entry["valueFrom"])) is not None:
                variables[entry["name"]] = value
        return variables

    def _all_of(self, source: Object) -> dict[str, str]:
        prefix = source.get("prefix") or ""
        for field, resource in (("secretRef", SECRETS), ("configMapRef", CONFIG_MAPS)):
            if reference := source.get(field):
                data = self._data(resource, reference) or {}
                return {f"{prefix}{key}": _text(value) for key, value in data.items()}
        return {}

    def _value(self, container: Object, source: Object) -> str | None:
        if reference := source.get("fieldRef"):
            return field_value(self.pod, reference["fieldPath"])
        if reference := source.get("resourceFieldRef"):
            return resource_value(self._named(container, reference), reference, self.allocatable)
        for field, resource in (("secretKeyRef", SECRETS), ("configMapKeyRef", CONFIG_MAPS)):
            if reference := source.get(field):
                return self._key(resource, reference)
        raise Unmet(f"a variable comes from {', '.join(source)}, which this node does not know")

    def _named(self, container: Object, reference: Object) -> Object:
        named = reference.get("containerName")
        containers: Sequence[Object] = self.pod["spec"]["containers"]
        return next((each for each in containers if each["name"] == named), container)

    def _key(self, resource: Resource, reference: Object) -> str | None:
        data = self._data(resource, reference)
        key = reference["key"]
        if data is not None and key in data:
            return _text(data[key])
        if reference.get("optional"):
            return None
        raise Unmet(f"{resource.kind} {reference['name']} has no key {key}")

    def _data(self, resource: Resource, reference: Object) -> dict[str, bytes] | None:
        found = self.lookup(resource, reference["name"])
        if found is not None:
            return data_of(resource, found)
        if reference.get("optional"):
            return None
        raise Unmet(f"{resource.kind} {reference['name']} does not exist")


def _text(value: bytes) -> str:
    # A variable cannot hold what is no text; what is lost then cannot be avoided.
    return value.decode(errors="replace").replace("\0", "")
