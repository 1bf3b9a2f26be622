"""Hooks in a real guest that take far longer than they may: they are ended, and it is told."""

import time

import libvirt
import pytest

from e2e.libvirt.conftest import LibvirtStage
from e2e.libvirt.test_real_machine import said
from inside_guest import agent_answers, inside
from machines import condition
from operators import eventually

SECONDS = 3
# Nothing but SIGKILL ends the one and its child; the other one tells when it is asked to end.
STUBBORN = "trap '' TERM; echo unending >/dev/null; (while :; do sleep 1; done) & wait"
OBEDIENT = (
    "trap 'echo hook was ended >/dev/ttyS0; exit 1' TERM; "
    "echo hook has begun >/dev/ttyS0; sleep 600 & wait"
)
# Written so that it does not find itself.
STILL_THERE = "grep -l '[u]nending' /proc/[0-9]*/cmdline 2>/dev/null"


def late(script: str) -> dict[str, object]:
    """Return a hook that has little time."""
    return {"exec": {"command": ["/bin/sh", "-c", script], "timeoutSeconds": SECONDS}}


@pytest.mark.full
def test_a_hook_that_does_not_end_in_time_is_ended(real: LibvirtStage) -> None:
    """After a start it keeps the machine from being ready, before a stop from nothing."""
    hooks = {"preStart": late(STUBBORN), "preStop": late(OBEDIENT)}
    obj = real.create("late", networks=[{"name": "default"}], lifecycle=hooks)
    uid = obj["metadata"]["uid"]
    real.scene.until("late", lambda obj: condition(obj, "Ready").get("reason") == "HookRunning")
    domain = real.domain(obj)
    eventually(lambda: stubborn_there(domain), lambda: said(real, uid))
    obj = real.scene.until(
        "late", lambda obj: condition(obj, "Ready").get("reason") == "HookFailed"
    )
    assert condition(obj, "Ready")["status"] == "False"
    message = condition(obj, "Ready")["message"]
    assert message.startswith(f"preStart did not end within {SECONDS} s; ")
    eventually(lambda: not stubborn_there(domain), lambda: inside(domain, "ps"))
    assert "hook has begun" not in said(real, uid)

    begun = time.monotonic()
    real.patch("late", {"running": False})
    # The patience of this is far less than what the program would sleep.
    real.scene.until("late", lambda obj: obj["status"]["phase"] == "Stopped")
    assert time.monotonic() - begun > SECONDS, "it had its time"
    assert not domain.isActive()
    told = real.scene.until_event("late", "HookFailed")["message"]
    assert told.startswith(f"preStop did not end within {SECONDS} s; ")
    assert told.endswith("; it is stopped all the same")
    words = said(real, uid)
    assert words.count("hook has begun") == words.count("hook was ended") == 1


def stubborn_there(domain: libvirt.virDomain) -> bool:
    """Say whether a guest that can be asked has the stubborn program."""
    return agent_answers(domain) and inside(domain, STILL_THERE) != ""
