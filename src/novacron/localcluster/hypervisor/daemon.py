"""The private daemon: start, stop, kill, and how it is reached."""

import os
import shutil
import sys
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from pathlib import Path

from novacron.localcluster.errors import LocalClusterError, ProcessFailed
from novacron.localcluster.hypervisor.configuration import write_configuration
from novacron.localcluster.hypervisor.launch import environment, program, root_command
from novacron.localcluster.hypervisor.membership import Membership
from novacron.localcluster.hypervisor.network_namespace import NetworkNamespace
from novacron.localcluster.hypervisor.places import Places
from novacron.localcluster.hypervisor.remains import end_processes, processes_of, remove_bridges
from novacron.localcluster.hypervisor.rights import missing_right
from novacron.localcluster.hypervisor.virsh import VIRSH, Virsh
from novacron.localcluster.identity import Identity, boot
from novacron.localcluster.processes import Processes, Program
from novacron.workplace.files import private_directory, write_private

__all__ = ["DAEMON", "Hypervisor"]

DAEMON = "libvirtd"
# The first start asks every QEMU what it can do.
READY_WITHIN = timedelta(seconds=60)
ATTEMPTS = 3
ENDED = b" ended with "  # what the supervisor says then
GUEST_GRACE = timedelta(seconds=8)
USER_MODE = "user"


@dataclass(frozen=True)
class Hypervisor:
    """A libvirt daemon that lives in one directory.

    Root's guests are on a bridge with DHCP that the machine reaches, in the named network
    namespace if there is one, which is made if need be; an ordinary user's reach out and are not
    reached.
    """

    directory: Path
    _: KW_ONLY
    namespace: str | None = None
    membership: Membership | None = None
    privileged: bool = field(default_factory=lambda: os.geteuid() == 0)

    @property
    def uri(self) -> str:
        """Return how libvirt's clients reach it."""
        kind = "system" if self.privileged else "session"
        return f"qemu:///{kind}?socket={self._places.socket}"

    @property
    def peer_uri(self) -> str | None:
        """Return how the daemons that it exchanges guests with reach it; None when alone."""
        if self.membership is None:
            return None
        # Without naming the way, a daemon takes itself to be meant.
        near = self.uri.replace("qemu:", "qemu+unix:", 1)
        return self.membership.peer_uri if self.privileged else near

    @property
    def pool_path(self) -> str | None:
        """Return where its storage pool is to be made; None is libvirt's own place, for root."""
        return None if self.privileged else str(self._places.pool)

    @property
    def network(self) -> str:
        """Return the name of its network, which only those have that it exchanges guests with."""
        if self.membership:
            return self.membership.network
        return f"nova-{self._places.mark}" if self.privileged else USER_MODE

    @property
    def processes(self) -> Processes:
        """Return the record of its process."""
        return Processes(self.directory / "process")

    def start(self) -> bool:
        """Start it or bring it up to date, wait until it is ready; say whether it was started."""
        self._require()
        private_directory(self.directory)
        self._forget_last_boot()
        self._places.make()
        version = write_configuration(
            self._places.own("etc"), privileged=self.privileged, membership=self.membership
        )
        if not self.privileged:
            self._places.make_alias()
        self.make_namespace()
        heard = len(self._log())
        started = self.processes.start(self._program(version))
        try:
            self.processes.wait_ready(DAEMON, lambda: self._settled(heard), READY_WITHIN)
        except BaseException:
            if started:
                self.processes.stop(DAEMON)
            raise
        return started

    def make_namespace(self) -> None:
        """Have the network that it will live in, so that somebody can connect it."""
        if self._namespace:
            self._namespace.make()

    def stop(self, grace: timedelta = GUEST_GRACE) -> bool:
        """End guests, networks and the daemon; data stays. Say whether anything ran."""
        if not self.directory.exists():
            return False
        was_there = self.running() is not None or bool(processes_of(self._places))
        if was_there:
            self._end_in_good_order(grace)
        self.processes.stop(DAEMON)
        self._clean_up()
        return was_there

    def kill(self) -> None:
        """End the daemon at once, as a crash would; guests go on, ``start`` brings it back."""
        self.processes.kill(DAEMON)

    def power_off(self) -> None:
        """End daemon, guests and network at once, as a power cut would; ``start`` brings it back.

        What a real host has in memory is lost, what it has on disk stays.
        """
        self.processes.kill(DAEMON)
        self._clean_up()

    def running(self) -> Identity | None:
        """Return the process that keeps the daemon running, if it is alive."""
        return self.processes.running(DAEMON)

    def ready(self) -> bool:
        """Ask the daemon itself whether it can serve."""
        return self._places.socket.exists() and Virsh(self.uri).answers()

    @property
    def _places(self) -> Places:
        return Places(self.directory)

    @property
    def _namespace(self) -> NetworkNamespace | None:
        record = self.directory / "namespace"
        return NetworkNamespace(self.namespace, record) if self.namespace else None

    def _require(self) -> None:
        for name in (DAEMON, VIRSH):
            program(name)
        right = missing_right() if self.privileged else None
        if right:
            raise LocalClusterError(
                f"this root has no {right}, which guests on a bridge need; "
                f"give the container {right}, or run as an ordinary user"
            )

    def _program(self, version: str) -> Program:
        supervised = (sys.executable, "-m", "novacron.localcluster.supervise")
        command = (
            root_command(self._places, self.namespace, self.membership)
            if self.privileged
            else (program(DAEMON),)
        )
        told = environment(self._places, privileged=self.privileged)
        return Program(DAEMON, (*supervised, *command), told, version)

    def _log(self) -> bytes:
        log = self.processes.log(DAEMON)
        return log.read_bytes() if log.exists() else b""

    def _settled(self, heard: int) -> bool:
        """Say whether the daemon is ready; give up on one that ends again and again."""
        if self.ready():
            return True
        if self._log()[heard:].count(ENDED) >= ATTEMPTS:
            tail = self.processes.tail(DAEMON)
            raise ProcessFailed(f"{DAEMON} does not stay; {self.processes.log(DAEMON)}:\n{tail}")
        return False

    def _end_in_good_order(self, grace: timedelta) -> None:
        # A daemon that was killed is started again: only it can ask the guests.
        with suppress(LocalClusterError):
            self.start()
            virsh = Virsh(self.uri)
            virsh.end_guests(grace)
            virsh.end_networks()

    def _clean_up(self) -> None:
        """Remove what a daemon that could not be asked left, and what counts only while it runs."""
        end_processes(self._places)
        remove_bridges(self._places, self.namespace)
        self._forget_run()
        if not self.privileged:
            self._places.remove_alias()
        if self._namespace:
            self._namespace.remove()

    def _forget_last_boot(self) -> None:
        """Forget what ran before the machine was started anew: libvirt would believe it."""
        record = self.directory / "boot"
        if not record.exists() or record.read_text() != boot():
            self._forget_run()
            write_private(record, boot())

    def _forget_run(self) -> None:
        shutil.rmtree(self.directory / "run", ignore_errors=True)
        # An address counts from when the guest asks for it, not since it last did.
        for leases in (self._places.own("lib") / "dnsmasq").glob("*.status"):
            leases.unlink(missing_ok=True)
