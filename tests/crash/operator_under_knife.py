"""The real operator with a knife above its writes; run as a process by the crash tests."""

import argparse
import os
from functools import partial
from pathlib import Path

from crash.knife import CutClient, CutDriver, Knife, Point
from crash.libvirt_calls import calls_to_cut, note_streams_that_read, of_what_is_read
from novacron.app.drivers import driver_makers
from novacron.app.main import serve
from novacron.app.operator import Operator
from novacron.app.settings import Settings
from novacron.controllers.drivers import MakeDriver
from novacron.core.driver import Driver
from novacron.core.host import DeclaredHost
from novacron.core.quantity import parse_duration
from novacron.runtime.logs import configure_logs


def cut(make: MakeDriver, knife: Knife, host: DeclaredHost) -> Driver:
    """Make a driver and put it under the knife."""
    return CutDriver(make(host), knife)


def cut_libvirt(knife: Knife) -> None:
    """Put everything under the knife that changes something at libvirt itself."""
    for owner, name in tuple(calls_to_cut()):
        knife.beneath(owner, name, unless=of_what_is_read)
    note_streams_that_read()


def main() -> None:
    """Run until the knife falls."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kubeconfig", type=Path)
    parser.add_argument("--simulation-file", type=Path)
    parser.add_argument("--health-probe-bind-addr")
    parser.add_argument("--images-directory", type=Path, default=Path("/nowhere"))
    parser.add_argument("--shutdown-grace", default="60s")
    parser.add_argument("--host-failure-grace", default="60s")
    parser.add_argument("--families", default="novacron")
    flags, _ = parser.parse_known_args()
    knife = Knife(Path(os.environ["JOURNAL"]), Point.parse(os.environ["POINT"]))
    settings = Settings(
        families=(flags.families,),
        leader_elect=False,
        health_probe_bind_addr=flags.health_probe_bind_addr,
        metrics_bind_addr="0",
        webhook_bind_addr="0",
        watch_namespaces=tuple(os.environ["WATCH_NAMESPACE"].split(",")),
        simulation_file=flags.simulation_file,
        images_directory=flags.images_directory,
        image_allow=("127.0.0.0/8",),
        shutdown_grace=parse_duration(flags.shutdown_grace),
        host_failure_grace=parse_duration(flags.host_failure_grace),
    )
    configure_logs("info", "text")
    CutClient.knife = knife
    client = CutClient.from_kubeconfig(flags.kubeconfig)
    makers: dict[str, MakeDriver] = {
        # What is written to KubeVirt goes through the client and is cut there.
        name: make if name == "kubevirt" else partial(cut, make, knife)
        for name, make in driver_makers(settings, client).items()
    }
    if "libvirt" in os.environ.get("BENEATH", ""):
        cut_libvirt(knife)
    serve(Operator(settings, client, makers))


if __name__ == "__main__":
    main()
