"""A guest under plain QEMU, without acceleration and without libvirt.

Its serial console, its agent and QEMU's own monitor are sockets in the guest's directory.
"""

import contextlib
import json
import re
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

__all__ = ["Guest", "overlay", "virtio_disk"]

BOOT_SECONDS = 90


def virtio_disk(path: Path, form: str = "raw", *, read_only: bool = False) -> list[str]:
    """Return the flags of a disk, the way a hypervisor gives it to guests of today."""
    name = f"disk-{path.stem}"
    access = ",read-only=on" if read_only else ""
    drive = f"if=none,id={name},file={path},format={form}{access}"
    return ["-drive", drive, "-device", f"virtio-blk-pci,drive={name}"]


def overlay(image: Path, target: Path, mebibytes: int) -> Path:
    """Make a disk upon the image, as hypervisors do for every machine."""
    create = ["qemu-img", "create", "-q", "-f", "qcow2", "-b", str(image), "-F", "qcow2"]
    subprocess.run([*create, str(target), f"{mebibytes}M"], check=True)
    return target


class Guest:
    """One virtual machine; its console is read from the moment it starts."""

    def __init__(self, directory: Path, *flags: str, memory: str = "192") -> None:
        self.directory = directory
        self.memory = memory
        self.flags = flags
        self.heard = ""
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "Guest":
        """Switch it on, also again after it went off."""
        self.kill()
        self.heard = ""
        log = (self.directory / "qemu.log").open("wb")
        with log:
            self.process = subprocess.Popen(self._command(), stdout=log, stderr=log)
        self._console = self._connect("console")
        self._monitor = self._connect("monitor")
        self._heard_from_monitor = self._monitor.makefile("r")
        self._heard_from_monitor.readline()
        self.monitor("qmp_capabilities")
        self.monitor("cont")
        return self

    def _command(self) -> list[str]:
        machine = ["-machine", "q35,accel=tcg", "-cpu", "qemu64", "-m", self.memory, "-S"]
        quiet = ["-nodefaults", "-display", "none", "-vga", "std"]
        console = ["-serial", f"unix:{self.directory}/console,server=on,wait=off"]
        monitor = ["-qmp", f"unix:{self.directory}/monitor,server=on,wait=off"]
        agent = [
            *("-chardev", f"socket,id=agent,path={self.directory}/agent,server=on,wait=off"),
            *("-device", "virtio-serial-pci"),
            *("-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"),
        ]
        program = ["qemu-system-x86_64", "-name", "tiny-under-test"]
        return [*program, *machine, *quiet, *console, *monitor, *agent, *self.flags]

    def _connect(self, name: str) -> socket.socket:
        deadline = time.monotonic() + 30
        connection = socket.socket(socket.AF_UNIX)
        while True:
            try:
                connection.connect(str(self.directory / name))
            except OSError:
                assert self.process is not None
                assert self.process.poll() is None, (self.directory / "qemu.log").read_text()
                assert time.monotonic() < deadline, f"QEMU does not listen on {name}"
                time.sleep(0.05)
            else:
                return connection

    def until(self, pattern: str, seconds: float = BOOT_SECONDS) -> re.Match[str]:
        """Wait until the console says something, and forget all that came before its end."""
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.heard)):
            left = deadline - time.monotonic()
            assert left > 0, f"the console never said {pattern!r}, but:\n{self.heard}"
            self._listen(left)
        self.heard = self.heard[found.end() :]
        return found

    def _listen(self, seconds: float) -> None:
        self._console.settimeout(seconds)
        with contextlib.suppress(TimeoutError):
            said = self._console.recv(65536).decode(errors="replace")
            assert said, f"the console was closed; before that:\n{self.heard}"
            self.heard += said.replace("\r", "")

    def ready(self) -> re.Match[str]:
        """Wait until it is ready, make it quiet, and return what the ready line says."""
        line = r"novacron-tiny: ready hostname=(?P<name>\S+) ip=(?P<ip>\S+) boot=(?P<boot>\d+)\n"
        found = self.until(line)
        self.until("tick 1\n")
        self.type("touch /run/tiny/quiet")
        return found

    def type(self, line: str) -> None:
        """Type a line on the console."""
        self._console.sendall(f"{line}\n".encode())

    def shell(self, line: str, seconds: float = 30) -> str:
        """Type a command and return what it printed; it must succeed."""
        # The echo of what is typed does not match: the marks are put together by the shell.
        self.type(f"echo be''gin; {line}; echo e''nd $?")
        self.until("begin\n", seconds)
        found = self.until(r"([\s\S]*?)end (\d+)\n", seconds)
        assert found[2] == "0", f"{line} failed: {found[1]}"
        return found[1].strip()

    def eventually(self, line: str, wanted: str, seconds: float = 20) -> None:
        """Wait until a command prints what is wanted."""
        deadline = time.monotonic() + seconds
        while (printed := self.shell(line)) != wanted:
            assert time.monotonic() < deadline, f"{line} still prints {printed!r}"
            time.sleep(0.2)

    def monitor(self, command: str, **arguments: Any) -> Any:
        """Ask QEMU to do something."""
        question = {"execute": command, "arguments": arguments}
        self._monitor.sendall(json.dumps(question).encode())
        while "event" in (answer := json.loads(self._heard_from_monitor.readline())):
            pass
        assert "return" in answer, answer
        return answer["return"]

    def agent(self, command: str, *, answered: bool = True, **arguments: Any) -> Any:
        """Ask the guest's agent to do something; it does not answer when it switches off."""
        connection = self._connect("agent")
        with connection, connection.makefile("r") as answers:
            connection.settimeout(30)
            question = {"execute": command, "arguments": arguments}
            connection.sendall(json.dumps(question).encode())
            answer = json.loads(answers.readline()) if answered else {"return": None}
        assert "return" in answer, answer
        return answer["return"]

    def gone(self, seconds: float) -> bool:
        """Say whether it switched itself off in time."""
        assert self.process is not None
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def kill(self) -> None:
        """Take its power away."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
            for open_one in (self._console, self._heard_from_monitor, self._monitor):
                open_one.close()
