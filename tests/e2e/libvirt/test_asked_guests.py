"""Hooks that are requests, answered by a web server inside a real guest."""

from typing import Any

import libvirt
import pytest

from e2e.libvirt.conftest import LibvirtStage
from e2e.libvirt.test_real_machine import said
from inside_guest import agent_answers, inside
from machines import condition
from operators import eventually

PORT = 8080
# They begin when the guest has an address; until then it may boot as slowly as it likes.
HOOK_SECONDS = 40
# Programs that answer: each says on the console that it was asked, for whom, and what for.
SERVER = f"""#!/bin/sh
mkdir -p /www/cgi-bin
cat >/www/cgi-bin/stop <<'END'
#!/bin/sh
echo "asked: $REQUEST_URI by $HTTP_USER_AGENT" >/dev/ttyS0
printf 'Status: 204 No Content\\r\\n\\r\\n'
END
sed 's/204 No Content/200 OK/' /www/cgi-bin/stop >/www/cgi-bin/not-yet
chmod +x /www/cgi-bin/*
httpd -p {PORT} -h /www
"""


def request(path: str, seconds: int) -> dict[str, Any]:
    """Return a hook that asks the guest."""
    headers = [{"name": "User-Agent", "value": "the-hook"}]
    action = {"port": PORT, "path": path, "timeoutSeconds": seconds, "httpHeaders": headers}
    return {"httpGet": action}


def because(reason: str) -> Any:
    """Return the claim that a machine is not ready for this reason."""
    return lambda obj: (
        condition(obj, "Ready").get("status") == "False"
        and condition(obj, "Ready")["reason"] == reason
    )


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("real", ["far"], indirect=True)
def test_a_guest_is_ready_when_it_answers_and_is_asked_before_it_stops(real: LibvirtStage) -> None:
    """The far host's guests are on a network that the operator reaches too."""
    hooks = {
        "preStart": request("/cgi-bin/early", HOOK_SECONDS),
        "preStop": request("/cgi-bin/stop", 30),
    }
    real.create("asked", networks=[{"name": "default"}], userData=SERVER, lifecycle=hooks)
    failed = real.scene.until("asked", because("HookFailed"), HOOK_SECONDS + 120)
    why = f"preStart did not end within {HOOK_SECONDS} s; it was answered with status 404"
    assert condition(failed, "Ready")["message"] == why
    assert failed["status"]["phase"] == "Running"
    uid, domain = failed["metadata"]["uid"], real.domain(failed)
    eventually(lambda: _serves(domain), lambda: said(real, uid))

    more = {"lifecycle": {"preStart": request("/cgi-bin/start", 120)}}
    real.patch("asked", {"template": {"spec": more}})
    waiting = real.scene.until("asked", because("HookRunning"))
    assert "preStart runs, for 120 s at most" in condition(waiting, "Ready")["message"]
    assert "asked: " not in said(real, uid), "nobody was answered so far"
    inside(domain, "mv /www/cgi-bin/not-yet /www/cgi-bin/start")
    real.scene.until_running("asked")
    assert said(real, uid).count("asked: /cgi-bin/start by the-hook") == 1

    usual = real.scene.operator
    with usual.replaced(flags=(*usual.flags, "--shutdown-grace=60s")):
        real.patch("asked", {"running": False})
        real.scene.until("asked", lambda obj: obj["status"]["phase"] == "Stopped")
    assert said(real, uid).count("asked: /cgi-bin/stop by the-hook") == 1
    assert domain.state()[1] == libvirt.VIR_DOMAIN_SHUTOFF_SHUTDOWN, "it could still answer"
    events = real.scene.api.events(real.scene.namespace, "asked")
    assert "HookFailed" not in {
        event["reason"] for event in events if "preStop" in event["message"]
    }


def _serves(domain: libvirt.virDomain) -> bool:
    """Say whether the guest's server is there."""
    if not agent_answers(domain):
        return False
    ask = f"wget -q -O- http://127.0.0.1:{PORT}/cgi-bin/start 2>&1"
    return "404" in inside(domain, ask)
