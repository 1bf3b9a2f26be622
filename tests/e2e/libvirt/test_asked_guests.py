"""Hooks that are requests, answered by a web server inside a real guest."""

import libvirt
import pytest

from e2e.libvirt.conftest import LibvirtStage
from e2e.libvirt.test_real_machine import said
from e2e.test_hooks import because, of_the_example
from inside_guest import agent_answers, inside
from machines import condition
from operators import eventually

# They begin when the guest has an address; until then it may boot as slowly as it likes.
HOOK_SECONDS = 40
# A page that the example's server does not have.
MISSING = "/cgi-bin/early"


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("real", ["far"], indirect=True)
def test_a_guest_is_ready_when_it_answers_and_is_asked_before_it_stops(real: LibvirtStage) -> None:
    """The far host's guests are on a network that the operator reaches too.

    It is the example, which asks for what is not there at first, and then as it is printed.
    """
    body = of_the_example("asked", real.scene, real.host)
    printed = body["spec"]["template"]["spec"]["lifecycle"]
    early = printed["preStart"]["httpGet"] | {"path": MISSING, "timeoutSeconds": HOOK_SECONDS}
    body["spec"]["template"]["spec"]["lifecycle"] = printed | {"preStart": {"httpGet": early}}
    real.scene.api.create(body)
    failed = real.scene.until("asked", because("HookFailed"), HOOK_SECONDS + 120)
    why = f"preStart did not end within {HOOK_SECONDS} s; it was answered with status 404"
    assert condition(failed, "Ready")["message"] == why
    assert failed["status"]["phase"] == "Running"
    uid, domain = failed["metadata"]["uid"], real.domain(failed)
    eventually(lambda: _serves(domain), lambda: said(real, uid))

    inside(domain, "mv /www/cgi-bin/ready /www/cgi-bin/not-yet")
    real.patch("asked", {"template": {"spec": {"lifecycle": printed}}})
    waiting = real.scene.until("asked", because("HookRunning"))
    assert "preStart runs, for 120 s at most" in condition(waiting, "Ready")["message"]
    assert "asked: " not in said(real, uid), "nobody was answered so far"
    inside(domain, "mv /www/cgi-bin/not-yet /www/cgi-bin/ready")
    real.scene.until_running("asked")
    assert said(real, uid).count("asked: /cgi-bin/ready by novacron") == 1

    usual = real.scene.operator
    with usual.replaced(flags=(*usual.flags, "--shutdown-grace=60s")):
        real.patch("asked", {"running": False})
        real.scene.until("asked", lambda obj: obj["status"]["phase"] == "Stopped")
    assert said(real, uid).count("asked: /cgi-bin/drain by novacron") == 1
    assert domain.state()[1] == libvirt.VIR_DOMAIN_SHUTOFF_SHUTDOWN, "it could still answer"
    events = real.scene.api.events(real.scene.namespace, "asked")
    assert "HookFailed" not in {
        event["reason"] for event in events if "preStop" in event["message"]
    }

    real.patch("asked", {"running": True})
    real.scene.until_running("asked")
    assert said(real, uid).count("asked: /cgi-bin/ready by novacron") == 2, "once for each start"


def _serves(domain: libvirt.virDomain) -> bool:
    """Say whether the guest's server is there, and its pages, of which it writes this one last."""
    if not agent_answers(domain):
        return False
    ask = f"test -x /www/cgi-bin/drain && wget -q -O- http://127.0.0.1:8080{MISSING} 2>&1"
    return "404" in inside(domain, ask)
