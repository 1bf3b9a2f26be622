"""A daemon that is down, that dies in the midst of work, that hangs: told in time, and got over.

Nothing here knows how the driver does it. Deadlines leave room for a busy machine; what must never
happen is that a call does not return.
"""

import asyncio
import http.server
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import libvirt
import pytest

from libvirt_daemon import LibvirtDaemon
from loopback import until
from novacron.core.errors import DriverError
from novacron.core.machine import Power
from novacron.drivers.libvirt import LibvirtDriver
from unit.drivers.libvirt.hosts import (
    connections,
    created,
    deleted,
    driver_for,
    eventually,
    left_on,
    machine,
    threads,
    unreachable_within,
)

MIB = 1024 * 1024
LARGE_MIB = 64
# Keep-alive gives a daemon up after 15 s; opening a connection is given up after 15 s too.
IN_TIME = 25.0
RAW = b"\xfa\xf4".ljust(510, b"\0") + b"\x55\xaa"


@pytest.fixture
async def driver(host):
    """A driver that has reached the host before."""
    connected = driver_for(host)
    assert await connected.machines("far") == []
    yield connected
    await connected.close()
    assert left_on(host) == set()


async def test_a_host_that_is_down_is_unreachable_at_once_and_found_when_it_is_up(host):
    """An operator often starts before its hosts."""
    host.kill()
    driver = driver_for(host)
    try:
        said = await unreachable_within(5, lambda: driver.observe(machine().ref))
        assert said.startswith("host far cannot be reached: ")
    finally:
        host.start()
    assert await driver.observe(machine().ref) is None
    await driver.close()


async def test_a_daemon_that_dies_is_noticed_and_found_again_with_its_news(host, driver):
    """Its guests go on, and so do we; changes are heard of by the new connection."""
    plan = machine()
    await created(driver, plan)
    await driver.set_power(plan.ref, Power.ON)
    await asyncio.sleep(1)  # a daemon that dies while it starts a guest ends it when it is back
    news: list[str] = []
    driver.on_change(news.append)
    host.kill()
    await unreachable_within(5, lambda: driver.observe(plan.ref))
    host.start()
    seen = await driver.observe(plan.ref)
    assert seen is not None
    assert seen.power is Power.ON
    news.clear()
    _pull_plug(host, plan.ref.uid)
    await until(lambda: plan.ref.uid in news, 10)
    await deleted(driver, plan)


@pytest.mark.full
async def test_a_daemon_that_hangs_is_unreachable_and_found_again_with_its_news(host, driver):
    """The call under way, one that comes later, and many at once: all end in time."""
    plan = machine()
    await created(driver, plan)
    news: list[str] = []
    driver.on_change(news.append)
    with host.frozen():
        said = await unreachable_within(IN_TIME, lambda: driver.observe(plan.ref))
        assert said.startswith("host far does not answer")
        await unreachable_within(IN_TIME, lambda: driver.set_power(plan.ref, Power.ON))
        # Nobody waits for long once it is known; nor does anybody stand in a queue.
        many = [unreachable_within(5, lambda: driver.observe(plan.ref)) for _ in range(30)]
        await asyncio.gather(*many)
    await eventually(lambda: _answers(driver), "the host answers again", 5)
    news.clear()
    await driver.set_power(plan.ref, Power.ON)
    _pull_plug(host, plan.ref.uid)  # what it does itself is no news to it
    await until(lambda: plan.ref.uid in news, 10)
    await deleted(driver, plan)


async def test_a_short_hang_is_only_a_pause(host, driver):
    """A host under load is not a host that is gone."""
    plan = machine()
    with host.frozen():
        call = asyncio.create_task(driver.observe(plan.ref))
        await asyncio.sleep(3)
        assert not call.done()
    assert await call is None


@contextmanager
def slow_image() -> Iterator[str]:
    """Serve an image that takes seconds the first time, and none later."""
    asked = threading.Event()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            first = not asked.is_set()
            asked.set()
            self.send_response(200)
            self.send_header("Content-Length", str(LARGE_MIB * MIB))
            self.end_headers()
            with suppress(OSError):  # whoever asked went away
                for chunk in [RAW.ljust(MIB, b"x"), *[bytes(MIB)] * (LARGE_MIB - 1)]:
                    self.wfile.write(chunk)
                    time.sleep(0.2 if first else 0)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/large.raw"
    server.shutdown()
    server.server_close()


@pytest.mark.full
@pytest.mark.parametrize("trouble", ["dies", "hangs"])
async def test_trouble_in_the_midst_of_an_upload_costs_only_time(host, driver, trouble):
    """What was brought half-way is cleared away, and the machine is made in the end.

    Two threads on one connection made libvirt write into freed memory here.
    """
    pool = host.directory / "lib/novacron"
    with slow_image() as image:
        plan = machine(image)
        await driver.create(plan)
        await until(lambda: _bytes_in(pool) > MIB, 30)
        if trouble == "dies":
            host.kill()
            await unreachable_within(10, lambda: driver.observe(plan.ref))
            assert _bytes_in(pool) < LARGE_MIB * MIB, "it was over too soon for this test"
            host.start()
        else:
            with host.frozen():
                assert _bytes_in(pool) < LARGE_MIB * MIB, "it was over too soon for this test"
                await unreachable_within(IN_TIME, lambda: driver.observe(plan.ref))
        seen = await created(driver, plan, 120)
    assert seen.power is Power.OFF
    images = sorted(pool.glob("image-*.raw*"))
    assert len(images) == 2, f"one image and its mark: {images}"
    assert images[0].stat().st_size == LARGE_MIB * MIB
    await deleted(driver, plan)
    for each in images:
        each.unlink()


async def test_connections_that_come_and_go_leave_neither_threads_nor_sockets(host):
    """An operator lives for months, hosts restart, and Hosts are declared and removed."""
    # Those of other tests' drivers, which only go meanwhile.
    before, idle = connections(), threads()
    driver = driver_for(host)
    await driver.observe(machine().ref)
    for _ in range(3):
        await until(lambda: len(connections() - before) == 1, 20)
        host.kill()
        with suppress(DriverError):
            await driver.observe(machine().ref)
        host.start()
        await eventually(lambda: _answers(driver), "the host answers again")
    await driver.close()
    await until(lambda: not connections() - before, 20)
    await until(lambda: not threads() - idle, 20)


@pytest.mark.parametrize("farewell", ["close", "leave", "call"])
def test_a_process_can_end_while_its_host_hangs(host, farewell):
    """Whether it takes leave of its driver or not, and with a call under way."""
    script = Path(__file__).parent / "process_that_ends.py"
    command = [sys.executable, str(script), host.uri, str(host.pid), farewell]
    begun = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    finally:
        os.kill(host.pid, signal.SIGCONT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "connected\nfrozen\n", "")
    assert time.monotonic() - begun < 20


def _pull_plug(host: LibvirtDaemon, uid: str) -> None:
    connection = libvirt.open(host.uri)
    domain = connection.lookupByUUIDString(uid)
    domain.memoryStats()  # waits until the daemon has found the guest again
    domain.destroy()
    connection.close()


def _bytes_in(pool: Path) -> int:
    found = list(pool.glob("image-*.raw")) if pool.exists() else []
    return sum(each.stat().st_blocks * 512 for each in found)


async def _answers(driver: LibvirtDriver) -> bool:
    await driver.machines("far")
    return True
