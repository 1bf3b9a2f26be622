"""What is asked of the agent inside a guest. Blocks, for a few seconds at most."""

import base64
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import libvirt
import libvirt_qemu

from novacron.core.errors import Busy, Rejected
from novacron.core.guest_commands import AGENT_SILENT
from novacron.drivers.libvirt.errors import code_of, sentence

__all__ = ["REFUSED", "SILENT", "Agent", "silent"]

SECONDS = 5
# The agent did as it was told, and that failed. By its words: libvirt's number for it is not the
# same in all versions.
REFUSED = re.compile("unable to execute QEMU agent command")
SILENT = frozenset(
    {
        libvirt.VIR_ERR_AGENT_UNRESPONSIVE,
        libvirt.VIR_ERR_AGENT_UNSYNCED,
        libvirt.VIR_ERR_OPERATION_TIMEOUT,
    }
)
# What a guest says is its own affair, and may be anything.
MALFORMED = (ValueError, TypeError, KeyError, RecursionError)
LONGEST_FILE = 4096
REFUSED_AGAIN = timedelta(minutes=1)


def silent() -> Busy:
    """Return what to raise while a guest's agent does not answer, or not in its language."""
    return Busy("the guest's agent does not answer", reason=AGENT_SILENT)


class _Refused(Exception):
    """The agent says no."""


@dataclass(frozen=True, slots=True)
class Agent:
    """The agent of one running guest."""

    handle: libvirt.virDomain

    def answers(self) -> bool:
        """Say whether it is there and does as it is told."""
        try:
            self._ask("guest-ping")
        except (Busy, _Refused, libvirt.libvirtError):
            return False
        return True

    def may_be_frozen(self) -> bool:
        """Say whether its file systems may be at rest, when it refuses nearly all it is asked."""
        try:
            return bool(self._ask("guest-fsfreeze-status") != "thawed")
        except _Refused:
            return False  # an agent that freezes them always tells
        except (Busy, libvirt.libvirtError):
            return True

    def begin(self, command: Sequence[str]) -> None:
        """Start a program; what becomes of it is to be seen elsewhere."""
        path, *arguments = command
        try:
            self._ask("guest-exec", path=path, arg=arguments)
        except _Refused as error:
            raise Rejected(
                f"the guest's agent does not run programs: {error}",
                reason="HookFailed",
                again=REFUSED_AGAIN,
            ) from error

    def read(self, path: str) -> str | None:
        """Return a small file of the guest, or None when there is none."""
        try:
            file = self._ask("guest-file-open", path=path, mode="r")
        except _Refused:
            return None
        try:
            return self._contents(file)
        except (_Refused, *MALFORMED) as error:
            raise silent() from error

    def _contents(self, file: object) -> str:
        try:
            answer = self._ask("guest-file-read", handle=file, count=LONGEST_FILE)
            return base64.b64decode(answer["buf-b64"]).decode(errors="replace")
        finally:
            self._ask("guest-file-close", handle=file)

    def _ask(self, command: str, **arguments: object) -> Any:  # noqa: ANN401 - as it says
        question = json.dumps({"execute": command, "arguments": arguments})
        try:
            answer = libvirt_qemu.qemuAgentCommand(self.handle, question, SECONDS, 0)
            return json.loads(answer)["return"]
        except libvirt.libvirtError as error:
            if code_of(error) in SILENT:
                raise silent() from error
            if REFUSED.search(sentence(error)):
                raise _Refused(sentence(error)) from error
            raise
        except MALFORMED as error:
            raise silent() from error
