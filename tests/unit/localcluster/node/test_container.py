"""A container over its runs, where the moment matters: cancelled while it starts."""

import asyncio
from datetime import timedelta

import pytest

from novacron.localcluster.identity import Identity
from novacron.localcluster.node.container import Container
from novacron.localcluster.node.records import ContainerRecord, Exit, Start, now
from novacron.localcluster.node.status import Running, Terminated, Waiting

LONG_AGO = Identity(1, 1, "another boot")


class _Silent:
    """Tells nobody."""

    def normal(self, reason, message):
        """Say nothing."""

    def warning(self, reason, message):
        """Say nothing."""


class _SlowLauncher:
    """Takes a while to start a process, as a busy machine does."""

    def __init__(self) -> None:
        self.began, self.finished = asyncio.Event(), False

    async def start(self, _, attempt):
        self.began.set()
        await asyncio.sleep(0.1)
        self.finished = True
        return Start(attempt, now(), LONG_AGO, LONG_AGO)


def _container(tmp_path, policy="Always"):
    spec = {"name": "c", "image": "novacron/novacron"}
    record = ContainerRecord(tmp_path)
    return Container(spec, record, policy, timedelta(), lambda: None, _Silent())


async def test_a_start_that_has_begun_is_finished_when_cancelled(tmp_path):
    """Whoever cancels goes on to end what runs, and must find all of it on record."""
    launcher = _SlowLauncher()
    running = asyncio.create_task(_container(tmp_path).run(launcher, ""))
    await launcher.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert launcher.finished


def test_what_is_on_record_is_recalled(tmp_path):
    """A new agent tells the same story as the one before."""
    record = ContainerRecord(tmp_path)
    record.started(Start(2, now(), LONG_AGO, LONG_AGO))
    record.ended(1, Exit(3, now(), now()))
    record.ended(2, Exit(4, now(), now()))
    container = _container(tmp_path)
    assert isinstance(container.view().state, Waiting)
    container.recall(None)
    view = container.view()
    assert isinstance(view.state, Terminated)
    assert (view.restarts, view.state.code, view.last.code) == (2, 4, 3)


def test_a_run_that_goes_on_keeps_what_its_probes_found(tmp_path):
    """Also when the node had been told to stop and was killed before it had ended the run."""
    alive = Identity.of(1)
    record = ContainerRecord(tmp_path)
    record.started(Start(0, now(), alive, alive))
    record.interrupt()
    assert record.was_interrupted(0)
    container = _container(tmp_path)
    container.recall({"ready": True, "started": True})
    view = container.view()
    assert isinstance(view.state, Running)
    assert (view.ready, view.started) == (True, True)
    assert not record.was_interrupted(0)


async def test_a_lost_run_is_a_failed_one(tmp_path):
    """The machine was switched off: nobody wrote down how it ended."""
    ContainerRecord(tmp_path).started(Start(0, now(), LONG_AGO, LONG_AGO))
    container = _container(tmp_path, "Never")
    container.recall(None)
    how = await container.run(_SlowLauncher(), "")
    assert (how.code, how.reason) == (137, "Error")
    # And it is the same whoever asks, whenever.
    assert ContainerRecord(tmp_path).exit(0).until == how.until


async def test_what_ended_while_nobody_looked_does_not_run_again_for_show(tmp_path):
    """An init container that is done must not make its pod look as if it began anew."""
    record = ContainerRecord(tmp_path)
    record.started(Start(0, now(), LONG_AGO, LONG_AGO))
    record.ended(0, Exit(0, now(), now()))
    container, seen = _container(tmp_path, "OnFailure"), []
    container.changed = lambda: seen.append(type(container.view().state))
    container.recall(None)
    assert (await container.run(_SlowLauncher(), "")).code == 0
    assert set(seen) == {Terminated}
