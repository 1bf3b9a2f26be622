"""Moves for which a guest is stopped: not for nothing, not without its hook, not for ever."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from novacron.core.devices import HostDevice
from novacron.core.hooks import GuestProgram, Hooks
from novacron.core.machine import Power
from novacron.core.move import MoveResult
from novacron.drivers.simulation import Fault, Operation, SimulatedHost, SimulationDriver
from unit.controllers.pair import ROOM, Hosts

MOVED = "Moved"
GPU = HostDevice("0000:af:00.0", "gpu", "nvidia", "tesla-t4")


def reason(hosts: Hosts) -> str:
    """Return what is said of the move."""
    claim = hosts.machine.condition(MOVED)
    return claim.reason if claim else ""


async def test_a_guest_does_before_a_move_what_it_does_before_every_stop(hosts: Hosts) -> None:
    """It runs meanwhile; and is then asked to stop, not killed for having taken its time."""
    hooks = Hooks(pre_stop=GuestProgram(("sleep", "90"), timedelta(seconds=300)))
    hosts.machine = replace(hosts.machine, hooks=hooks)
    await hosts.set_off(live=False)
    assert reason(hosts) == "HookRunning"
    assert hosts.where() == [("a", Power.ON)]
    hosts.now += timedelta(seconds=89)
    await hosts.round()
    assert reason(hosts) == "HookRunning"
    hosts.now += timedelta(seconds=2)
    done = await hosts.round()
    assert reason(hosts) == "StoppingToMove"
    assert not [each for each in done.happened if each.reason == "HookFailed"]
    await hosts.settle()
    await hosts.settle()  # it is started where it came to
    assert hosts.where() == [("b", Power.ON)]


async def test_a_guest_whose_hook_takes_too_long_moves_all_the_same(hosts: Hosts) -> None:
    """Which is told."""
    hooks = Hooks(pre_stop=GuestProgram(("sleep", "90"), timedelta(seconds=5)))
    hosts.machine = replace(hosts.machine, hooks=hooks)
    await hosts.set_off(live=False)
    hosts.now += timedelta(seconds=6)
    done = await hosts.round()
    (failed,) = (each for each in done.happened if each.reason == "HookFailed")
    assert "did not end within 5 s" in failed.message
    await hosts.settle()
    await hosts.settle()  # it is started where it came to
    assert hosts.where() == [("b", Power.ON)]


async def test_a_guest_that_would_not_be_taken_in_is_not_stopped(tmp_path: Path) -> None:
    """Else one that is drained would be stopped and started again every half minute."""
    refuses = Fault(Operation.MOVE, "OutOfCapacity", message="no room after all")
    hosts = Hosts(tmp_path, faults=(refuses,))
    await hosts.settle()
    done = await hosts.set_off(live=False)
    assert hosts.machine.last_move is not None
    assert hosts.machine.last_move.result is MoveResult.FAILED
    assert done.seen is not None
    assert done.seen.power is Power.ON
    assert hosts.where() == [("a", Power.ON)]


async def test_a_machine_goes_nowhere_where_its_devices_are_not_free(tmp_path: Path) -> None:
    """Whoever keeps wrong books is told before anything is stopped."""
    hosts = Hosts(tmp_path)
    await hosts.settle()
    await hosts.set_off(live=False, devices=(GPU,))
    last = hosts.machine.last_move
    assert last is not None
    assert last.message == "host b has no device 0000:af:00.0"
    assert hosts.where() == [("a", Power.ON)]


async def test_an_arrival_waits_for_what_it_lacks(tmp_path: Path) -> None:
    """A device that somebody took out meanwhile: it says so, and goes on when it is back."""
    hosts = Hosts(tmp_path)
    able = SimulatedHost("b", ROOM, delays=hosts.delays, devices=(GPU,))
    hosts.drivers["b"] = driver(hosts, able)
    await hosts.settle()
    hosts.machine = replace(hosts.machine, power=Power.OFF)
    await hosts.settle()
    await hosts.set_off(live=False, devices=(GPU,))
    hosts.drivers["b"] = driver(hosts, replace(able, devices=()))
    hosts.now += timedelta(seconds=11)
    waits = await hosts.round()
    assert hosts.machine.move is not None
    assert waits.outcomes[MOVED].message.endswith("host b has no device 0000:af:00.0")
    hosts.drivers["b"] = driver(hosts, able)
    await hosts.settle()
    assert hosts.where() == [("b", Power.OFF)]


def driver(hosts: Hosts, host: SimulatedHost) -> SimulationDriver:
    """Connect to a host of the same file."""
    return SimulationDriver(hosts.directory / "world.db", host, clock=lambda: hosts.now)
