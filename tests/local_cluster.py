"""A local cluster as a user has it: everything through the ``novacron`` command."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["LocalCluster", "processes_under"]

NOVACRON = (sys.executable, "-m", "novacron.app.entry")
DEADLINE_SECONDS = 240


@dataclass(frozen=True)
class LocalCluster:
    """One state directory, and the command that works on it."""

    home: Path
    cache: Path

    @property
    def environment(self) -> dict[str, str]:
        """What a shell of this user has set."""
        inherited = {k: v for k, v in os.environ.items() if k not in ("KUBECONFIG", "NO_COLOR")}
        return {
            **inherited,
            "HOME": str(self.home.parent),
            "NOVACRON_HOME": str(self.home),
            "NOVACRON_CACHE": str(self.cache),
        }

    def call(self, *arguments: str, answer: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a command and return how it ended."""
        return subprocess.run(
            [*NOVACRON, *arguments],
            input=answer,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_SECONDS,
        )

    def ok(self, *arguments: str) -> str:
        """Run a command that must succeed and return what it printed."""
        done = self.call(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def fails(self, *arguments: str) -> str:
        """Run a command that must fail and return its one sentence."""
        done = self.call(*arguments)
        assert done.returncode == 1, done.stdout + done.stderr
        assert done.stderr.startswith("error: "), done.stderr
        assert "Traceback" not in done.stderr
        return done.stderr.removeprefix("error: ").strip()

    def json(self, *arguments: str) -> Any:
        """Run a read command and return the facts."""
        return json.loads(self.ok(*arguments, "-o", "json"))

    def pids(self) -> dict[str, int]:
        """Return the process of every component that runs."""
        done = self.call("status", "-o", "json")
        components = json.loads(done.stdout)["components"]
        return {each["name"]: each["pid"] for each in components if each["pid"]}

    def versions(self) -> list[str]:
        """Return what moves with every write to anything that ``up`` writes."""
        kinds = "crd,clusterrole,clusterrolebinding,virtualmachines.novacron.io,hosts.novacron.io"
        listed = json.loads(
            self.ok("kubectl", "get", kinds, "-A", "--show-managed-fields", "-o", "json")
        )
        return sorted(
            f"{item['kind']} {item['metadata']['name']} {_version(item)}"
            for item in listed["items"]
            # Kubernetes fills its own aggregated roles in the background.
            if "role" not in item["kind"].lower() or item["metadata"]["name"].startswith("novacron")
        )


def _version(item: dict[str, Any]) -> str:
    """Return what moves with every write, but not with those of the operator to a status."""
    metadata = item["metadata"]
    if "novacron.io" not in item["apiVersion"]:
        return str(metadata["resourceVersion"])
    # Whoever changed something else is on record with the time.
    return str([each for each in metadata["managedFields"] if each.get("subresource") != "status"])


def processes_under(directory: Path) -> list[str]:
    """Return every process on this machine that has to do with the directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes() + (entry / "environ").read_bytes()
        except OSError:
            continue
        if str(directory).encode() in command and entry.name != str(os.getpid()):
            found.append(command.replace(b"\0", b" ").decode(errors="replace")[:200])
    return found
