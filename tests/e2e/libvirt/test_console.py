"""``novacron console`` and ``novacron vnc`` with a guest that listens, boots once and is talked to.

No operator runs: the machine is declared, and put on its host by hand, so that nothing but the
command itself is looked at.
"""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from api import Api
from cpu_time import cost_beside_python, starting
from libvirt_daemon import LibvirtDaemon, own_daemon
from machines import host, virtual_machine
from novacron.core.machine import MachinePlan, MachineRef, Power, Resources
from novacron.localcluster.controlplane import ControlPlane
from novacron.localcluster.ports import free_port
from operators import eventually
from pseudo_terminal import PseudoTerminal
from unit.drivers.libvirt.hosts import created, driver_for

CTRL_C, CTRL_RIGHT_BRACKET = b"\x03", b"\x1d"
PROMPT, READY = "talker:~# ", "ready hostname=talker"


@dataclass(frozen=True)
class Talker:
    """A guest that has booted, and the command line of a user who may see it."""

    daemon: LibvirtDaemon
    plane: ControlPlane
    namespace: str
    host: str
    plan: MachinePlan

    @property
    def environment(self) -> dict[str, str]:
        """What the user's shell has set."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("NOVACRON", "KUBE"))}
        return {**kept, "KUBECONFIG": str(self.plane.kubeconfig), "TERM": "xterm"}

    def command(self, *arguments: str) -> list[str]:
        """Return how the command line is called in the machine's namespace."""
        program = [sys.executable, "-m", "novacron.app.entry"]
        return [*program, *arguments, "-n", self.namespace]

    def call(self, *arguments: str, **more: Any) -> "subprocess.CompletedProcess[str]":
        """Run a command without a terminal."""
        if "stdin" not in more:
            more = {"input": "", **more}
        return subprocess.run(
            self.command(*arguments),
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
            **more,
        )

    def fails(self, *arguments: str) -> str:
        """Run a command that must fail, and return its one sentence."""
        done = self.call(*arguments)
        assert done.returncode == 1, done
        assert done.stdout == ""
        assert len(done.stderr.splitlines()) == 1
        return done.stderr.removeprefix("error: ").strip()

    @contextmanager
    def terminal(self, *arguments: str) -> Iterator[PseudoTerminal]:
        """Run a command on a terminal."""
        terminal = PseudoTerminal(self.command(*arguments), self.environment)
        try:
            yield terminal
        finally:
            terminal.close()

    def by_driver(self, work: Callable[[Any], Any]) -> Any:
        """Do something behind the command's back."""

        async def act() -> Any:
            driver = driver_for(self.daemon)
            try:
                return await work(driver)
            finally:
                await driver.close()

        return asyncio.run(act())

    def boot(self) -> None:
        """Switch the guest on, and wait until its shell waits for orders."""
        before = self.said().count(READY)
        self.by_driver(lambda driver: driver.set_power(self.plan.ref, Power.ON))
        eventually(lambda: self.said().count(READY) > before, self.said, 120)
        quiet = "touch /run/tiny/quiet; echo qui''et\n"
        assert "quiet" in self.call("console", "talker", "--linger", "3", input=quiet).stdout

    def said(self) -> str:
        """Return what the guest said, read from the file itself."""
        path = self.daemon.directory / f"lib/novacron/{self.plan.ref.uid}-console.log"
        return path.read_text(errors="replace") if path.exists() else ""


@pytest.fixture(scope="module")
def talker(cluster: ControlPlane, api: Api) -> Iterator[Talker]:
    """One guest for all tests of this module."""
    namespace, name = f"console-{uuid4().hex[:8]}", f"host-{uuid4().hex[:8]}"
    api.create_namespace(namespace)
    with own_daemon() as daemon:
        api.create(host(name, driver="libvirt", endpoint=daemon.uri, simulation=None))
        uid = _declared(api, cluster, namespace, "talker", name)
        ref = MachineRef(uid, namespace, "talker", name)
        plan = MachinePlan(ref, Resources(1, 192, 256), "builtin://tiny")
        found = Talker(daemon, cluster, namespace, name, plan)
        found.by_driver(lambda driver: created(driver, plan))
        found.boot()
        yield found
    api.delete_host(name)


def _declared(api: Api, cluster: ControlPlane, namespace: str, name: str, on: str | None) -> str:
    made = api.create(virtual_machine(name, namespace))
    if on is not None:
        patch = json.dumps({"status": {"nodeName": on, "phase": "Running"}})
        place = ("virtualmachines.novacron.io", name, "-n", namespace)
        cluster.kubectl("patch", *place, "--subresource=status", "--type=merge", "-p", patch)
    uid: str = made["metadata"]["uid"]
    return uid


def test_a_person_talks_to_a_guest_and_leaves(talker: Talker) -> None:
    """Every key is the guest's, Ctrl-C as well, and Ctrl-] leaves."""
    with talker.terminal("console", "talker") as terminal:
        terminal.until(f"Console of talker on host {talker.host}; Ctrl-] ends.\r\n")
        terminal.until(PROMPT)
        assert terminal.raw()
        terminal.type(b"echo $((6*7))\n")
        terminal.until("\n42\r\n")
        terminal.type(b"sleep 100\n")
        terminal.until("sleep 100\r\n")
        time.sleep(1)  # a shell that is just starting a program takes it for a letter
        terminal.type(CTRL_C)
        terminal.until(PROMPT)
        assert terminal.process.poll() is None
        terminal.type(CTRL_RIGHT_BRACKET)
        assert terminal.ended(10) == 0
        terminal.until("Left the console of talker.\r\n")


def test_a_visitor_sees_at_once_where_the_guest_stands(talker: Talker) -> None:
    """Without questions that the terminal would answer into the guest's ear."""
    with talker.terminal("console", "talker") as terminal:
        terminal.until(PROMPT)
        terminal.type(b"echo half" + CTRL_RIGHT_BRACKET + b"never sent\n")
        assert terminal.ended(10) == 0
    with talker.terminal("console", "talker") as terminal:
        shown = terminal.until("echo half")
        assert b"\x1b[6n" not in shown.string
        terminal.type(b"-whole\n")
        terminal.until("\nhalf-whole\r\n")
        terminal.type(CTRL_RIGHT_BRACKET)
        assert terminal.ended(10) == 0
    assert "never sent" not in talker.said()


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_with_the_terminal_as_it_was(talker: Talker, how: signal.Signals) -> None:
    """Somebody closes a window, or kills what hangs."""
    with talker.terminal("console", "talker") as terminal:
        terminal.until(PROMPT)
        assert terminal.raw()
        terminal.signal(how)
        assert terminal.ended(10) == 128 + how


def test_whoever_comes_later_takes_the_console(talker: Talker) -> None:
    """A window forgotten somewhere must not keep everybody out."""
    with talker.terminal("console", "talker") as first:
        first.until(PROMPT)
        with talker.terminal("console", "talker") as second:
            second.until(PROMPT)
            assert first.ended(10) == 0
            first.until("somebody else opened it")
            second.type(b"echo se''cond\n")
            second.until("second\r\n")
            second.type(CTRL_RIGHT_BRACKET)
            assert second.ended(10) == 0


def test_a_host_that_hangs_does_not_hold_the_user(talker: Talker) -> None:
    """Ctrl-] is heard here, not there."""
    with talker.terminal("console", "talker") as terminal:
        terminal.until(PROMPT)
        with talker.daemon.frozen():
            terminal.type(b"echo hel''lo\n" + CTRL_RIGHT_BRACKET)
            assert terminal.ended(10) == 0


@pytest.mark.full
def test_a_host_that_stays_silent_is_told(talker: Talker) -> None:
    """After a quarter of a minute it is no pause any more."""
    with talker.terminal("console", "talker") as terminal:
        terminal.until(PROMPT)
        with talker.daemon.frozen():
            assert terminal.ended(30) == 1
        terminal.until(f"error: host {talker.host} does not answer any more\r\n")


def test_input_from_a_pipe_is_carried_and_the_answer_is_plain_text(talker: Talker) -> None:
    """For scripts: no window, no escape, no questions to a terminal."""
    done = talker.call("console", "talker", "--linger", "2", input="echo pi''ped \x1d$((1+1))\n")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "piped" in done.stdout
    assert "\x1b" not in done.stdout
    assert READY not in done.stdout


def test_input_may_be_a_file_or_nothing_at_all(talker: Talker, tmp_path: Path) -> None:
    """Neither can be waited for."""
    script = tmp_path / "script"
    script.write_text("echo from''file\n")
    with script.open() as file:
        done = talker.call("console", "talker", "--linger", "2", stdin=file)
    assert (done.returncode, done.stderr) == (0, "")
    assert "fromfile" in done.stdout
    done = talker.call("console", "talker", "--linger", "1", stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, "")


def test_what_was_said_is_printed_and_followed(talker: Talker) -> None:
    """Without taking the console from anybody."""
    logged = talker.call("console", "talker", "--log")
    assert logged.returncode == 0
    assert READY in logged.stdout
    assert "\x1b" not in logged.stdout
    with talker.terminal("console", "talker", "--log", "-f") as follower:
        follower.until(PROMPT)
        talker.call("console", "talker", "--linger", "1", input="echo fol''lowed\n")
        follower.until("followed\r\n")
        follower.type(CTRL_C)
        assert follower.ended(10) == 0


def test_kubectl_runs_it_as_a_plug_in(talker: Talker, kubernetes_binaries: Path) -> None:
    """`kubectl novacron console` is the same command."""
    beside = Path(sys.executable).parent
    environment = {**talker.environment, "PATH": f"{beside}:{os.environ['PATH']}"}
    command = [str(kubernetes_binaries / "kubectl"), "novacron"]
    done = subprocess.run(
        [*command, "console", "talker", "--log", "-n", talker.namespace],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert READY in done.stdout


def test_the_screen_is_told_and_carried(talker: Talker) -> None:
    """To whatever viewer, though the host has a network of its own."""
    told = talker.call("vnc", "talker").stdout
    where = re.search(r"is at (127\.0\.0\.1):(\d+) on host (\S+)\.", told)
    assert where is not None
    assert where[3] == talker.host
    assert f"vncviewer 127.0.0.1::{where[2]}" in told
    facts = json.loads(talker.call("vnc", "talker", "-o", "json").stdout)
    assert facts == {"host": talker.host, "address": "127.0.0.1", "port": int(where[2])}

    port = free_port()
    with talker.terminal("vnc", "talker", "--proxy", f"127.0.0.1:{port}") as proxy:
        proxy.until(f"vncviewer 127.0.0.1::{port}")
        for _ in range(2):
            assert _name_of_screen(port) == f"QEMU ({talker.namespace}.talker)"
        proxy.type(CTRL_C)
        assert proxy.ended(10) == 0


def test_a_port_that_is_taken_is_told(talker: Talker) -> None:
    """And without a port there is always one."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = talker.fails("vnc", "talker", "--proxy", str(port))
    assert said == f"cannot listen on 127.0.0.1:{port}: Address already in use"
    with talker.terminal("vnc", "talker", "--proxy") as proxy:
        found = proxy.until(r"vncviewer 127\.0\.0\.1::(\d+)\r\n")
        assert _name_of_screen(int(found[1])).startswith("QEMU")


def _name_of_screen(port: int) -> str:
    """Shake hands as a viewer does, and return what the screen is called."""
    with socket.create_connection(("127.0.0.1", port), 10) as viewer, viewer.makefile("rb") as said:
        assert said.read(12) == b"RFB 003.008\n"
        viewer.sendall(b"RFB 003.008\n")
        assert 1 in said.read(said.read(1)[0])
        viewer.sendall(b"\x01")
        assert said.read(4) == bytes(4)
        viewer.sendall(b"\x01")
        said.read(20)
        return said.read(int.from_bytes(said.read(4))).decode()


def test_what_cannot_be_shown_is_told_in_one_sentence(
    talker: Talker, cluster: ControlPlane, api: Api
) -> None:
    """What is missing, and what to do."""
    here = talker.namespace
    simulated, gone = f"sim-{uuid4().hex[:8]}", f"gone-{uuid4().hex[:8]}"
    api.create(host(simulated))
    api.create(host(gone, driver="libvirt", endpoint="qemu:///system?socket=/no", simulation=None))
    _declared(api, cluster, here, "unplaced", None)
    _declared(api, cluster, here, "simulated", simulated)
    _declared(api, cluster, here, "lost", gone)
    _declared(api, cluster, here, "absent", talker.host)
    _declared(api, cluster, here, "homeless", "no-such-host")
    try:
        for command in ("console", "vnc"):
            assert (
                talker.fails(command, "ghost")
                == f'no virtual machine "ghost" in namespace "{here}"'
            )
            assert talker.fails(command, "unplaced") == (
                "unplaced runs on no host now; it is not looked at yet"
            )
            assert talker.fails(command, "simulated") == (
                f"simulated has no console: its host {simulated} is of driver simulation"
            )
            assert talker.fails(command, "homeless") == 'no host "no-such-host"'
            lost = talker.fails(command, "lost")
            assert lost.startswith(f"host {gone} cannot be reached: Failed to connect socket")
            assert lost.endswith("is a socket on the operator's own machine: call this there")
            absent = talker.fails(command, "absent")
            assert absent == f"absent: absent is not on host {talker.host} any more"
    finally:
        for name in (simulated, gone):
            api.delete_host(name)


def test_a_screen_is_for_this_machine_alone(talker: Talker) -> None:
    """It has no password."""
    for address in ("0.0.0.0:5901", "192.0.2.1:5901", "nonsense", "127.0.0.1:99999"):
        done = talker.call("vnc", "talker", "--proxy", address)
        assert done.returncode == 2
        assert "Error: " in done.stderr
    assert "no password" in talker.call("vnc", "talker", "--proxy", "0.0.0.0:5901").stderr


@pytest.mark.full
def test_a_guest_that_is_switched_off_ends_it(talker: Talker) -> None:
    """And one that is off has neither console nor screen, but what it said stays."""
    try:
        with talker.terminal("console", "talker") as terminal:
            terminal.until(PROMPT)
            ref = talker.plan.ref
            talker.by_driver(lambda driver: driver.set_power(ref, Power.OFF, force=True))
            assert terminal.ended(15) == 0
            terminal.until("The console of talker ended: it was switched off")
        for command in ("console", "vnc"):
            assert talker.fails(command, "talker") == (
                "talker is off; start it with `novacron vm start talker`"
            )
        assert READY in talker.call("console", "talker", "--log").stdout
    finally:
        talker.boot()


def test_the_commands_start_within_a_persons_patience(talker: Talker) -> None:
    """What is not used is not loaded: no operator, no scheduler, no types."""
    command, environment = talker.command("console", "talker", "--log"), talker.environment
    loading = subprocess.run(
        command,
        env={**environment, "PYTHONPROFILEIMPORTTIME": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in loading.stderr.splitlines()}
    assert "novacron.cli.guest" in loaded
    assert sorted(name for name in loaded if name.startswith(UNUSED)) == []
    peer = starting("asyncio", "click", "libvirt", "ssl", "yaml")
    assert cost_beside_python(command, peer, environment) < 5


FAMILY = "novacron.families.novacron"
UNUSED = (
    *("novacron.app.operator", "novacron.app.controllers", "novacron.scheduler", "novacron.crd"),
    *(f"{FAMILY}.types", f"{FAMILY}.host_types", "aiohttp", "cryptography", "pydantic"),
)
