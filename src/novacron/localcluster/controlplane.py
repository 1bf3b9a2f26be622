"""A Kubernetes control plane on loopback: start, stop, restart, and who may speak to it."""

import ssl
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from novacron.localcluster.components import (
    AUTHORITY,
    COMPONENTS,
    PROBES,
    Credentials,
    command,
)
from novacron.localcluster.errors import LocalClusterError, PortTaken
from novacron.localcluster.identity import Identity
from novacron.localcluster.kubeconfig import write_kubeconfig
from novacron.localcluster.layout import ADMIN, NODE_NAME, Layout
from novacron.localcluster.node_program import node_program
from novacron.localcluster.pki import Authority
from novacron.localcluster.ports import LOOPBACK, Ports
from novacron.localcluster.probe import answers
from novacron.localcluster.processes import Processes, Program
from novacron.localcluster.stopping import stop_all, stop_component
from novacron.workplace.files import private_directory
from novacron.workplace.progress import Progress, Silent

__all__ = ["ControlPlane", "Options"]

# The API server waits for etcd by itself; the others give up when it does not know them yet.
WAVES = (("etcd", "kube-apiserver"), ("kube-controller-manager", "kube-scheduler", "node"))
READY_WITHIN = timedelta(seconds=90)
ATTEMPTS = 3
LISTENERS = {"etcd": ("etcd", "etcd-peer")}
ADMIN_GROUP = "system:masters"

SILENT = Silent()


@dataclass(frozen=True, slots=True)
class Options:
    """How this control plane differs from the ordinary one.

    Without fsync a power cut loses the data: for throw-away clusters only. Extra flags come
    last on the named component's command line and so win over ours.
    """

    components: Sequence[str] = COMPONENTS
    fsync: bool = True
    extra_flags: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class ControlPlane:
    """The programs of one cluster, which live in one directory."""

    directory: Path
    binaries: Path
    options: Options = field(default_factory=Options)

    @property
    def processes(self) -> Processes:
        """Return the records of this cluster's processes."""
        return self._layout.processes

    @property
    def ports(self) -> Ports:
        """Return the remembered ports."""
        return self._layout.ports

    @property
    def url(self) -> str:
        """Return where the API server listens."""
        port = self.ports.read().get("kube-apiserver")
        if port is None:
            raise LocalClusterError("the local cluster was never started")
        return f"https://{LOOPBACK}:{port}"

    @property
    def kubeconfig(self) -> Path:
        """Return the administrator's kubeconfig."""
        return self._layout.kubeconfig()

    def start(self, progress: Progress = SILENT) -> list[str]:
        """Start whatever does not run, wait until all is ready; return what was started.

        A port that was taken between choosing and using it is chosen anew.
        """
        private_directory(self.directory)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._start_missing(progress)
            except PortTaken as taken:
                if attempt == ATTEMPTS:
                    raise
                self._forget_port(str(taken))
        raise AssertionError("unreachable")

    def stop(self) -> list[str]:
        """Stop everything, those that lean on others first; return what was running."""
        return stop_all(self._layout)

    def restart(self, name: str) -> None:
        """Stop one component in good order and start it again on the same port."""
        stop_component(self._layout, name)
        self.start()

    def kill(self, name: str) -> None:
        """End one component as a crash would; ``start`` brings it back."""
        self.processes.kill(name)

    def running(self, name: str) -> Identity | None:
        """Return the component's process if it is alive."""
        return self.processes.running(name)

    def ready(self, name: str = "kube-apiserver") -> bool:
        """Ask the component itself whether it can serve."""
        return self._probe(name)()

    def client_certificate(
        self, user: str, groups: Sequence[str] = (), *, embed: bool = True
    ) -> Path:
        """Return a kubeconfig by which the API server knows its holder as this user."""
        authority = Authority(self._layout.pki, AUTHORITY)
        name = user.removeprefix("system:").replace(":", "-")
        pair = authority.client(name, user, groups)
        path = self._layout.kubeconfig(name)
        return write_kubeconfig(path, self.url, authority.pair.certificate, pair, embed=embed)

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002 - as subprocess
        """Run kubectl as the administrator and return what it printed."""
        done = subprocess.run(
            [self.binaries / "kubectl", "--kubeconfig", self.kubeconfig, *arguments],
            input=input,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise LocalClusterError(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    @property
    def _layout(self) -> Layout:
        return Layout(self.directory)

    def _start_missing(self, progress: Progress) -> list[str]:
        credentials = Credentials.prepare(self.directory)
        self._claim_ports()
        self.client_certificate(ADMIN, [ADMIN_GROUP])
        self.client_certificate("system:kube-controller-manager", embed=False)
        self.client_certificate("system:kube-scheduler", embed=False)
        started: list[str] = []
        try:
            for wave in WAVES:
                names = [name for name in wave if name in self.options.components]
                started += [name for name in names if self._launch(name, credentials)]
                self._await(names, progress)
        except BaseException:
            for name in reversed(started):
                stop_component(self._layout, name)
            raise
        return started

    def _await(self, names: Sequence[str], progress: Progress) -> None:
        total = len(self.options.components)
        for name in names:
            self.processes.wait_ready(name, self._probe(name), READY_WITHIN)
            progress.count("components ready", self.options.components.index(name) + 1, total)

    def _probe(self, name: str) -> Callable[[], bool]:
        credentials = Credentials.prepare(self.directory)
        if name == "etcd":
            authority, client = credentials.etcd_authority, credentials.etcd_client
        else:
            cluster = Authority(self._layout.pki, AUTHORITY)
            authority, client = cluster.pair, cluster.client(ADMIN, ADMIN, [ADMIN_GROUP])
        context = ssl.create_default_context(cafile=str(authority.certificate))
        context.load_cert_chain(client.certificate, client.key)
        return lambda: answers(self.ports.read().get(name), PROBES[name], context)

    def _launch(self, name: str, credentials: Credentials) -> bool:
        return self.processes.start(
            self._node(credentials) if name == "node" else self._program(name, credentials)
        )

    def _program(self, name: str, credentials: Credentials) -> Program:
        flags = command(
            name, self._layout, credentials, self.ports.read(), fsync=self.options.fsync
        )
        extra = self.options.extra_flags.get(name, ())
        command_line = (str(self.binaries / name), *flags, *extra)
        return Program(name, command_line, version=credentials.version)

    def _node(self, credentials: Credentials) -> Program:
        user, groups = f"system:node:{NODE_NAME}", ["system:nodes"]
        kubeconfig = self.client_certificate(user, groups, embed=False)
        authority = Authority(self._layout.pki, AUTHORITY)
        port = self.ports.read()["node"]
        program = node_program(self._layout, authority, kubeconfig, port)
        return replace(program, version=program.version + credentials.version)

    def _claim_ports(self) -> None:
        for name in self.options.components:
            known = self.ports.read()
            for listener in LISTENERS.get(name, (name,)):
                # A lost port of a running component is no port: it is started again with a new one.
                if listener not in known or not self.processes.running(name):
                    self.ports.claim(listener)

    def _forget_port(self, message: str) -> None:
        name = message.partition(" ")[0]
        for listener in LISTENERS.get(name, (name,)):
            self.ports.claim(listener, anew=True)
