"""Where our programs begin: the command line with everything in it, and the operator alone.

Imports nothing heavy: what a command does not use is never loaded.
"""

import sys
from collections.abc import Collection, Iterable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from novacron.cli.failure import Failure
from novacron.cli.main import run
from novacron.cli.wiring import Guest, Wiring

if TYPE_CHECKING:
    from novacron.runtime.client import Client
    from novacron.scheduler import Decision

__all__ = ["main", "manager"]


def main() -> None:
    """Run ``novacron``."""
    operator = (sys.executable, "-m", "novacron.app.entry", "operator", "run")
    wiring = Wiring(_crds, _rbac, operator, _guest, _explain, _delete_volume)
    run(wiring, {"operator": "novacron.app.command:operator"})


def manager() -> None:
    """Run the operator alone: ``/manager`` in the image."""
    from novacron.app.command import run as run_operator  # noqa: PLC0415
    from novacron.cli.failure import reported  # noqa: PLC0415

    with reported():
        run_operator.main(prog_name="manager")


def _crds(families: Collection[str], minimum_memory: str) -> list[dict[str, Any]]:
    from novacron.app.definitions import crds  # noqa: PLC0415 - heavy

    try:
        return crds(families, minimum_memory)
    except ValueError as error:
        raise Failure(str(error)) from error


def _rbac(families: Collection[str]) -> list[dict[str, Any]]:
    from novacron.app.rights import rbac  # noqa: PLC0415 - heavy

    return rbac(families)


def _guest(
    client: "Client", machine: dict[str, Any], secrets: str
) -> AbstractAsyncContextManager[Guest | None]:
    from novacron.app.guest import guest_of  # noqa: PLC0415 - heavy

    return guest_of(client, machine, secrets)


def _explain(
    machine: dict[str, Any],
    hosts: Iterable[dict[str, Any]],
    machines: Iterable[dict[str, Any]],
    namespaces: Iterable[dict[str, Any]],
) -> "Decision":
    from novacron.app.explain import explained  # noqa: PLC0415 - heavy

    return explained(machine, hosts, machines, namespaces)


async def _delete_volume(
    client: "Client", host: str, namespace: str, volume: str, secrets: str
) -> None:
    from novacron.app.volumes import delete_volume  # noqa: PLC0415 - heavy

    await delete_volume(client, host, namespace, volume, secrets)


if __name__ == "__main__":
    main()
