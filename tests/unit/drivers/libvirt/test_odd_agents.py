"""Agents of guests that answer in odd ways, and guests without room: nobody waits for ever."""

import json
import subprocess
from base64 import b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import libvirt
import libvirt_qemu
import pytest

from novacron.core.errors import Busy
from novacron.core.guest_commands import AGENT_SILENT
from novacron.core.hooks import GuestProgram, Ran
from novacron.core.machine import Power
from novacron.drivers.libvirt import LibvirtDriver, growth
from novacron.drivers.libvirt.agent import Agent
from novacron.drivers.libvirt.commands import ONCE, PLACE
from novacron.drivers.libvirt.record import Begun
from novacron.drivers.libvirt.snapshot_record import Note
from unit.drivers.libvirt.hosts import created, deleted, eventually, machine

REFUSAL = "internal error: unable to execute QEMU agent command 'guest-file-read': no"
HANDLE, NOTHING = '{"return": 7}', '{"return": {}}'


class Refusal(libvirt.libvirtError):
    """What libvirt says of a command that the agent refused."""

    def __init__(self) -> None:
        super().__init__("")

    def get_error_code(self) -> int:
        """Return what most versions say."""
        return int(libvirt.VIR_ERR_INTERNAL_ERROR)

    def get_error_message(self) -> str:
        """Return what all versions say."""
        return REFUSAL


def contents(text: str) -> str:
    """Return how an agent answers when a file is read."""
    return json.dumps({"return": {"buf-b64": b64encode(text.encode()).decode()}})


def answering(answers: Mapping[str, str | None]) -> Callable[..., str]:
    """Return how an agent answers that refuses what it has no answer to."""

    def answered(_: object, question: str, *__: object) -> str:
        if (answer := answers[json.loads(question)["execute"]]) is None:
            raise Refusal
        return answer

    return answered


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Agent]:
    """An agent that answers as it was told, to open, read and close in this order."""

    def telling(
        opened: str = HANDLE, read: str | None = None, closed: str | None = NOTHING
    ) -> Agent:
        answers = {"guest-file-open": opened, "guest-file-read": read, "guest-file-close": closed}
        monkeypatch.setattr(libvirt_qemu, "qemuAgentCommand", answering(answers))
        return Agent(cast("libvirt.virDomain", None))

    return telling


def test_a_file_of_a_guest_is_read(agent: Callable[..., Agent]) -> None:
    """Otherwise the tests below say nothing."""
    assert agent(read=contents("0\n")).read("/code") == "0\n"


@pytest.mark.parametrize(
    "odd",
    [
        {"opened": "{}"},
        {"opened": "no JSON"},
        {"opened": "[]"},
        {"read": None},
        {"read": "{}"},
        {"read": NOTHING},
        {"read": '{"return": 3}'},
        {"read": '{"return": {"buf-b64": 3}}'},
        {"read": '{"return": {"buf-b64": "abc"}}'},
        {"read": contents("0"), "closed": None},
    ],
    ids=str,
)
def test_an_agent_that_answers_oddly_counts_as_silent(
    agent: Callable[..., Agent], odd: dict[str, str | None]
) -> None:
    """Hooks know how to deal with that: their time runs out, and the machine stops."""
    with pytest.raises(Busy) as busy:
        agent(**odd).read("/code")
    assert busy.value.reason == AGENT_SILENT


@pytest.mark.parametrize(
    ("status", "taking", "knows"),
    [
        ('{"return": "thawed"}', False, True),
        (None, False, True),
        ('{"return": "frozen"}', False, False),
        ("no JSON", False, False),
        ('{"return": "thawed"}', True, False),
    ],
    ids=str,
)
def test_an_agent_that_starts_nothing_knows_what_grew_unless_its_guest_may_be_frozen(
    monkeypatch: pytest.MonkeyPatch, status: str | None, *, taking: bool, knows: bool
) -> None:
    """One whose owner forbids it never will; one that is frozen does when it goes on."""
    answers = {"guest-exec": None, "guest-fsfreeze-status": status}
    records = [SimpleNamespace(note=Note(made=True)), SimpleNamespace(note=Note(made=not taking))]
    monkeypatch.setattr(libvirt_qemu, "qemuAgentCommand", answering(answers))
    monkeypatch.setattr(growth, "records", lambda _: records)
    assert growth.grow_file_systems(cast("libvirt.virDomain", None)) is knows


@pytest.mark.parametrize("code", ["", "\n", "soon", "-1", "1_0", "9" * 4000, "0\n0\n", "\ufffd"])
def test_a_result_that_is_no_number_is_a_failure(code: str) -> None:
    """Whoever is root in the guest may write there what he likes."""
    ended = Begun.new("preStop", "d").ended(code, "look there").ran
    assert ended is not None
    assert (ended.code, ended.note) == (125, "its result cannot be read; look there")


def test_a_result_that_is_a_number_is_the_result() -> None:
    """As the script in the guest writes it."""
    ended = Begun.new("preStop", "d").ended("17\n", "look there").ran
    assert ended is not None
    assert (ended.code, ended.note) == (17, "look there")


def test_a_result_for_which_there_is_no_room_is_not_there_at_all(tmp_path: Path) -> None:
    """An empty one would be taken for what it is not."""
    own = tmp_path / "token"
    script = ONCE.replace(PLACE, str(tmp_path))
    full = ("/bin/sh", "-c", f"ln -s /dev/full {own}/code.new")
    subprocess.run(["/bin/sh", "-c", script, "hook", "token", "60", *full], check=False)
    assert (own / "output").exists()
    assert not (own / "code").exists()
    # The same with room.
    subprocess.run(["/bin/sh", "-c", script, "hook", "other", "60", "/bin/false"], check=False)
    assert (tmp_path / "other" / "code").read_text() == "1\n"


async def test_a_program_that_spoils_its_result_has_failed(driver: LibvirtDriver) -> None:
    """In a real guest: one that fills all its memory leaves such a result as well."""
    plan, ran = machine(), list[Ran]()
    spoiling = GuestProgram(("/bin/sh", "-c", f": >$(echo {PLACE}/*)/code; sleep 600"))
    await created(driver, plan)
    await driver.set_power(plan.ref, Power.ON)

    async def ended() -> bool:
        found = await driver.run_once(plan.ref, "preStop", spoiling)
        ran.extend([found] if found else [])
        return found is not None

    await eventually(ended, "the program ends")
    assert ran[0].code == 125
    await deleted(driver, plan)
