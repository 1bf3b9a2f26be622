"""Two who fill one volume with the same bytes at the same moment."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import libvirt

from libvirt_daemon import own_daemon
from novacron.drivers.libvirt import LibvirtHost
from novacron.drivers.libvirt.pool import open_pool

ROUNDS = 60
CONTENT = bytes(range(256)) * 256


def test_two_who_fill_one_volume_at_once_do_each_other_no_harm() -> None:
    """For a moment after a hand-over two operators may both make a machine."""
    both = Barrier(2)
    with own_daemon() as daemon:
        host = LibvirtHost("a", daemon.uri)

        def fill_all() -> None:
            connection = libvirt.open(daemon.uri)
            pool = open_pool(connection, host)
            for number in range(ROUNDS):
                both.wait(60)
                pool.fill(f"volume-{number}", len(CONTENT), [CONTENT])
            connection.close()

        with ThreadPoolExecutor(2) as workers:
            for done in [workers.submit(fill_all) for _ in range(2)]:
                done.result()
        pool = open_pool(libvirt.open(daemon.uri), host)
        lost = [n for n in range(ROUNDS) if pool.read(f"volume-{n}") != CONTENT]
    assert lost == []
