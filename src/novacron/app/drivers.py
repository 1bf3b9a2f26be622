"""How a driver of each kind is made for a host, for the operator and the command line alike."""

from functools import partial

from novacron.app.libvirt import libvirt_driver
from novacron.app.settings import Settings
from novacron.app.simulation import simulation_driver
from novacron.controllers.drivers import MakeDriver
from novacron.runtime.client import Client

__all__ = ["driver_makers"]


def driver_makers(settings: Settings, client: Client) -> dict[str, MakeDriver]:
    """Return how a driver of each kind is made for a host."""
    return {
        "simulation": partial(simulation_driver, default_file=settings.simulation_file),
        "libvirt": partial(libvirt_driver, settings=settings, client=client),
    }
