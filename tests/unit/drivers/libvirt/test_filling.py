"""Volumes that are being filled, while others fill the same ones or remove theirs."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event

import libvirt
import pytest

from libvirt_daemon import add_pool, own_daemon
from novacron.core.errors import Busy
from novacron.drivers.libvirt import LibvirtHost
from novacron.drivers.libvirt.pool import Pool, class_pool, open_pool
from operators import eventually

ROUNDS = 60
LOOKS = 1000
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


def test_no_volume_is_overlooked_while_others_are_made(tmp_path: Path) -> None:
    """Or a whole image is taken for the half of one, and what is noted about it goes."""
    there = {f"volume-{number}" for number in range(20)}
    with own_daemon() as daemon, ThreadPoolExecutor(1) as other:
        connection = libvirt.open(daemon.uri)
        add_pool(connection, "own", tmp_path)
        pool, end = class_pool(connection, "own"), Event()
        for name in there:
            pool.empty(name, 0, "raw")
        made = other.submit(make_without_end, daemon.uri, end)
        try:
            overlooked = [there - pool.names() for _ in range(LOOKS)]
        finally:
            end.set()
        assert made.result() > 0
        assert not set().union(*overlooked)
        connection.close()


def make_without_end(uri: str, end: Event) -> int:
    """Make and remove volumes until somebody says that it is enough; return how many."""
    connection, count = libvirt.open(uri), 0
    pool = class_pool(connection, "own")
    while not end.is_set():
        pool.empty(f"other-{count}", 0, "raw")
        count += 1
        if not count % 50:
            pool.remove_all("other-")
    connection.close()
    return count


def make_slowly(uri: str) -> None:
    """Make a volume of which all tables are written, which takes a second or more."""
    connection = libvirt.open(uri)
    large = (
        "<volume><name>large</name><capacity unit='GiB'>200</capacity>"
        "<allocation>0</allocation>"
        "<target><format type='qcow2'/></target></volume>"
    )
    flag = libvirt.VIR_STORAGE_VOL_CREATE_PREALLOC_METADATA
    connection.storagePoolLookupByName("own").createXML(large, flag)
    connection.close()


def is_seen(pool: Pool) -> bool:
    """Say whether libvirt looks at what is in a pool."""
    try:
        pool.refresh()
    except libvirt.libvirtError:
        return False
    return True


def test_what_libvirt_does_not_see_for_a_while_is_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """virtlogd makes new files for what guests say; nobody would look for them once more."""
    monkeypatch.setattr("novacron.drivers.libvirt.pool.OTHERS_MAKE_SECONDS", 0.0)
    with own_daemon() as daemon, ThreadPoolExecutor(1) as other:
        connection = libvirt.open(daemon.uri)
        add_pool(connection, "own", tmp_path)
        pool = class_pool(connection, "own")
        for name in ("mine-root", "mine-seed-1", "mine-seed-2"):
            pool.make(name, 1, "raw")
        made = other.submit(make_slowly, daemon.uri)
        eventually(lambda: not is_seen(pool), lambda: "libvirt is at work")
        (tmp_path / "mine-console.log.0").touch()
        pool.remove_all("mine-seed-", except_for=frozenset({"mine-seed-2"}))
        with pytest.raises(Busy, match="has asynchronous jobs running"):
            pool.remove_all("mine-")
        assert not (tmp_path / "mine-root").exists(), "what is known goes at once"
        made.result()
        pool.remove_all("mine-")
        assert [each.name for each in tmp_path.iterdir()] == ["large"]
        connection.close()
