"""How a driver of each kind is made for a host, for the operator and the command line alike."""

from functools import partial

from novacron.app.settings import Settings
from novacron.app.simulation import simulation_driver
from novacron.controllers.drivers import MakeDriver
from novacron.core.driver import Driver
from novacron.core.host import DeclaredHost
from novacron.runtime.client import Client

__all__ = ["driver_makers"]


def driver_makers(settings: Settings, client: Client) -> dict[str, MakeDriver]:
    """Return how a driver of each kind is made for a host."""
    return {
        "simulation": partial(simulation_driver, default_file=settings.simulation_file),
        "libvirt": partial(_libvirt, settings=settings, client=client),
        "kubevirt": partial(_kubevirt, settings=settings, client=client),
    }


def _libvirt(host: DeclaredHost, settings: Settings, client: Client) -> Driver:
    # Loaded when the first such host is declared: all about images comes with it.
    from novacron.app.libvirt import libvirt_driver  # noqa: PLC0415

    return libvirt_driver(host, settings, client)


def _kubevirt(host: DeclaredHost, settings: Settings, client: Client) -> Driver:
    # Loaded when the first such cluster is used.
    from novacron.app.kubevirt import kubevirt_driver  # noqa: PLC0415

    return kubevirt_driver(host, settings, client)
