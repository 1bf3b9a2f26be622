"""The kinds that commands speak of: their addresses, their columns, their words."""

from typing import TYPE_CHECKING, Any

from novacron.cli.failure import Failure
from novacron.cli.output import Column, age
from novacron.runtime.resource import Object, Resource

if TYPE_CHECKING:
    from novacron.runtime.client import Client

__all__ = [
    "HOSTS",
    "HOST_COLUMNS",
    "MACHINES",
    "MACHINE_COLUMNS",
    "OPERATOR_NAMESPACE",
    "OUT_OF_SERVICE",
    "VITI_MACHINES",
    "condition",
    "fetch",
    "fetch_all",
    "missing",
    "named",
    "status",
]

MACHINES = Resource("novacron.io", "v1alpha1", "virtualmachines", "VirtualMachine")
# Those of the Viti Stack, which users name as machine/NAME.
VITI_MACHINES = Resource("vitistack.io", "v1alpha1", "machines", "Machine")
HOSTS = Resource("novacron.io", "v1alpha1", "hosts", "Host", namespaced=False)
# Where an operator keeps what is its own, unless it was told otherwise.
OPERATOR_NAMESPACE = "novacron-system"
# The taint of a host, or its node, of which somebody said that it is off.
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
NOUNS = {MACHINES: "virtual machine", VITI_MACHINES: "machine", HOSTS: "host"}
WORDS = {
    word: resource
    for resource, words in (
        (MACHINES, ("vm", "virtualmachine", "virtualmachines")),
        (VITI_MACHINES, ("machine", "machines", "m")),
    )
    for word in words
}


def named(text: str) -> tuple[Resource, str]:
    """Return which machine a user means: NAME or vm/NAME, or machine/NAME of the Viti Stack."""
    word, slash, name = text.rpartition("/")
    if not slash:
        return MACHINES, name
    resource = WORDS.get(word.partition(".")[0].lower())
    if resource is None:
        raise Failure(f"nothing is called {word!r} here: write NAME, vm/NAME or machine/NAME")
    return resource, name


def status(item: Object) -> dict[str, Any]:
    """Return the status, empty when nobody has written one yet."""
    return item.get("status") or {}


def condition(item: Object, type_: str) -> dict[str, Any]:
    """Return the named condition, empty when it is not there."""
    found = (each for each in status(item).get("conditions") or () if each.get("type") == type_)
    return next(found, {})


def _created(item: Object) -> str:
    return age(item["metadata"].get("creationTimestamp"))


def _host_state(item: Object) -> str:
    ready = condition(item, "Ready").get("status", "Unknown")
    words = [{"True": "Ready", "False": "NotReady"}.get(ready, "Unknown")]
    if item["spec"].get("drain") is not None:
        words.append("Draining")
    elif item["spec"].get("unschedulable"):
        words.append("Unschedulable")
    taints = (item["spec"].get("taints"), (status(item).get("node") or {}).get("taints"))
    if any(taint["key"] == OUT_OF_SERVICE for each in taints for taint in each or ()):
        words.append("Fenced")
    return ",".join(words)


def _allocatable(resource: str) -> Column:
    return Column(
        resource.upper(), lambda item: (status(item).get("allocatable") or {}).get(resource)
    )


MACHINE_COLUMNS = (
    Column("NAME", lambda item: item["metadata"]["name"]),
    Column("PHASE", lambda item: status(item).get("phase")),
    Column("NODE", lambda item: status(item).get("nodeName")),
    Column("IP", lambda item: next(iter(status(item).get("ipAddresses") or ()), "")),
    Column("AGE", _created),
)
HOST_COLUMNS = (
    Column("NAME", lambda item: item["metadata"]["name"]),
    Column("DRIVER", lambda item: item["spec"].get("driver")),
    Column("STATE", _host_state),
    Column("MACHINES", lambda item: status(item).get("machines")),
    _allocatable("cpu"),
    _allocatable("memory"),
    Column("AGE", _created),
)


async def fetch(
    client: "Client", resource: Resource, name: str, namespace: str | None = None
) -> Object:
    """Return one object, or fail in words that say what is not there."""
    from novacron.runtime.errors import NotFound  # noqa: PLC0415

    try:
        return await client.get(resource, name, namespace)
    except NotFound as error:
        raise missing(resource, name, namespace, error) from error


async def fetch_all(
    client: "Client", resource: Resource, namespace: str | None = None
) -> list[Object]:
    """Return all objects of a kind, or fail in words that say that there is no such kind."""
    from novacron.runtime.errors import NotFound  # noqa: PLC0415

    try:
        return await client.list(resource, namespace)
    except NotFound as error:
        raise missing(resource, "", namespace, error) from error


def missing(resource: Resource, name: str, namespace: str | None, error: Exception) -> Failure:
    """Return the failure for an object, or a whole kind, that the cluster does not have."""
    if f'"{name}"' in str(error):
        where = f' in namespace "{namespace}"' if resource.namespaced else ""
        return Failure(f'no {NOUNS[resource]} "{name}"{where}')
    return Failure(f"the cluster does not serve {resource}; install it with `novacron crd install`")
