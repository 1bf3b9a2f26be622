"""A hook in a real guest while the operator that began it dies, again and again."""

import pytest

from e2e.libvirt.conftest import LibvirtStage
from inside_guest import agent_answers, inside
from machines import condition
from operators import eventually

HOOK = "echo start >>/root/hooks; sync; sleep 8"


@pytest.mark.full
@pytest.mark.timeout(600)
def test_a_hook_is_done_once_however_often_the_operator_dies(real: LibvirtStage) -> None:
    """The guest itself refuses to begin twice, and what it did is on record with it."""
    hook = {"exec": {"command": ["/bin/sh", "-c", HOOK], "timeoutSeconds": 60}}
    obj = real.create("lucky", networks=[{"name": "default"}], lifecycle={"preStart": hook})
    obj = real.scene.until(
        "lucky", lambda obj: condition(obj, "Ready").get("reason") == "HookRunning"
    )
    domain = real.domain(obj)
    eventually(lambda: agent_answers(domain), lambda: real.scene.operator.log)
    for _ in range(4):
        real.scene.operator.kill()
        real.scene.operator.start()
    obj = real.scene.until_running("lucky")
    assert inside(domain, "cat /root/hooks") == "start"
    real.scene.operator.kill()
    real.scene.operator.start()
    real.scene.until_running("lucky")
    assert inside(domain, "cat /root/hooks") == "start"
