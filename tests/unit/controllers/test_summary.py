"""What a round looks like to a user: phase, Ready, and what is wrong."""

from datetime import UTC, datetime

import pytest

from novacron.controllers.round import Round
from novacron.controllers.summary import broken, summarise, with_devices
from novacron.core.devices import HostDevice
from novacron.core.machine import Machine, Observed, Power, Resources
from novacron.core.move import Move
from novacron.core.report import Phase
from novacron.core.steps import Blocked, Done, Outcome, Wait

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
SIZE = Resources(1, 512, 1024)
SEEN = Observed("u", "sim-1", Power.ON, SIZE, addresses=("10.0.0.2",))
OFF = Observed("u", "sim-1", Power.OFF, SIZE)
DONE: dict[str, Outcome] = {"Created": Done(), "Configured": Done(), "Powered": Done()}


def machine(power: Power = Power.ON, **more: object) -> Machine:
    """A placed machine."""
    fields: dict[str, object] = {
        "uid": "u",
        "namespace": "n",
        "name": "m",
        "wanted": SIZE,
        "image": "builtin://tiny",
        "power": power,
        "host": "a",
        "reserved": SIZE,
    }
    return Machine(**(fields | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("power", "seen", "last", "phase", "ready"),
    [
        (Power.ON, SEEN, Done(), Phase.RUNNING, "True"),
        (Power.OFF, OFF, Done(), Phase.STOPPED, "False"),
        (Power.ON, OFF, Wait("Starting"), Phase.PENDING, "False"),
        (Power.OFF, SEEN, Wait("Stopping"), Phase.RUNNING, "False"),
        (Power.ON, None, Wait("Creating"), Phase.PENDING, "False"),
        (Power.ON, None, Blocked("Rejected", "no"), Phase.FAILED, "False"),
        (Power.ON, OFF, Blocked("Rejected", "no"), Phase.FAILED, "False"),
        (Power.ON, None, Wait("HostUnreachable"), None, "Unknown"),
    ],
)
def test_phase_and_ready_are_derived(
    power: Power, seen: Observed | None, last: Outcome, phase: Phase | None, ready: str
) -> None:
    """From what was seen and where the steps stopped; no phase when nobody can tell."""
    outcomes: dict[str, Outcome] = {"Created": last} if seen is None else {**DONE, "Powered": last}
    report = summarise(machine(power), Round(outcomes, seen), NOON, write_usage=False)
    assert report.phase == phase
    assert next(c.status for c in report.conditions if c.type == "Ready") == ready


def test_a_refused_machine_loses_its_host_and_remembers_the_refusal() -> None:
    """So that the placer looks elsewhere."""
    round_ = Round({"Created": Wait("HostFull", None, "full")}, None, refused=True)
    report = summarise(machine(refused_hosts=frozenset({"b"})), round_, NOON, write_usage=False)
    assert report.host is None
    assert report.reserved is None
    assert report.refused_hosts == {"a", "b"}


def test_our_own_failure_changes_nothing_but_one_condition() -> None:
    """The machine is as it was; Reconciled says that we are not well, until we are."""
    report = broken(machine(), ValueError("oops"), NOON)
    assert (report.phase, report.host, report.reserved) == (None, "a", SIZE)
    assert [c.reason for c in report.conditions] == ["InternalError"]
    healed = summarise(
        machine(conditions=report.conditions), Round(DONE, SEEN), NOON, write_usage=False
    )
    assert "Reconciled" not in {c.type for c in healed.conditions}


GPU = HostDevice("0000:3b:00.0", "gpu", "nvidia", "tesla-t4", 0)
OTHER_GPU = HostDevice("0000:5e:00.0", "gpu", "nvidia", "tesla-t4", 1)


@pytest.mark.parametrize(
    ("move", "host", "devices"),
    [
        (None, None, (GPU,)),
        (None, "a", (GPU,)),
        (Move("1", "a", "b", devices=(OTHER_GPU,)), "b", (OTHER_GPU,)),
        (Move("1", "a", "b", devices=(OTHER_GPU,)), None, (GPU,)),
        (None, "b", ()),
    ],
)
def test_devices_are_those_of_the_host_that_a_machine_is_on(
    move: Move | None, host: str | None, devices: tuple[HostDevice, ...]
) -> None:
    """One that came after its move was given up would get whatever has that address there."""
    assert with_devices(machine(devices=(GPU,), move=move), host).devices == devices
