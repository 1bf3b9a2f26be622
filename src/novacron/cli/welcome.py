"""What a new cluster starts with: one simulated host and a first machine.

Given once. A user who deletes or stops them finds them so after the next ``up``.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import novacron
from novacron.cli.failure import Failure
from novacron.cli.follow import follow, in_phase
from novacron.cli.host import host_body
from novacron.cli.kinds import HOSTS, MACHINES, condition
from novacron.runtime.resource import Object, Resource
from novacron.workplace.files import write_private
from novacron.workplace.progress import Progress

if TYPE_CHECKING:
    from novacron.runtime.client import Client

__all__ = ["FIRST_MACHINE", "first_machine", "welcome"]

FIRST_MACHINE = "hello"
FIRST_HOST = "local"
NAMESPACE = "default"
CAPACITY = {"cpu": 16, "memory": "64Gi", "disk": "1Ti"}
EXAMPLE = "examples/01-first-vm.yaml"
RUNNING_WITHIN_SECONDS = 120.0


async def welcome(client: "Client", marker: Path, progress: Progress) -> list[Object]:
    """Make host and machine unless that was done before; return all machines when it runs."""
    if not _given(marker):
        await _create(client, HOSTS, host_body(FIRST_HOST, "simulation", CAPACITY))
        await follow(
            client,
            HOSTS,
            FIRST_HOST,
            None,
            lambda host: host is not None and condition(host, "Ready").get("status") == "True",
            seconds=RUNNING_WITHIN_SECONDS,
            tell=lambda _: None,
        )
        await _create(client, MACHINES, first_machine())
        write_private(marker, "given\n")
    first = await client.list(MACHINES, NAMESPACE, selector=f"metadata.name={FIRST_MACHINE}")
    if first and first[0]["spec"].get("running"):
        await follow(
            client,
            MACHINES,
            FIRST_MACHINE,
            NAMESPACE,
            in_phase("Running"),
            seconds=RUNNING_WITHIN_SECONDS,
            tell=progress.say,
        )
    return await client.list(MACHINES, NAMESPACE)


def _given(marker: Path) -> bool:
    """Say whether this cluster was welcomed before."""
    return marker.exists()


def first_machine() -> Object:
    """Return the example that the guide begins with."""
    import yaml  # noqa: PLC0415 - heavy

    package = Path(novacron.__file__).parent
    # Installed, the examples lie inside the package; in a checkout beside its sources.
    for base in (package, package.parents[1]):
        if (base / EXAMPLE).is_file():
            machine: Object = yaml.safe_load((base / EXAMPLE).read_text())
            return machine
    raise Failure(f"{EXAMPLE} is not installed")


async def _create(client: "Client", resource: Resource, body: Object) -> None:
    from novacron.runtime.errors import AlreadyExists  # noqa: PLC0415

    try:
        await client.create(resource, body, NAMESPACE if resource.namespaced else None)
    except AlreadyExists:
        # A run that was interrupted before it could note this came as far.
        return
