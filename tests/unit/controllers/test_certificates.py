"""Who cannot travel encrypted, and who is looked at again when that changes."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from machines import host
from novacron.app.registry import HOST_KIND
from novacron.controllers.certificates import Certificates
from novacron.controllers.ledger import Ledger
from novacron.core.machine import Machine, Power, Resources
from novacron.core.move import MovePolicy
from novacron.runtime.cache import Cache
from novacron.runtime.resource import Resource
from novacron.scheduler import Held

HOSTS = Resource("novacron.io", "v1alpha1", "hosts", "Host", namespaced=False)
SIZE = Resources(1, 512, 1024)
ABLE = ["EncryptedMigration", "LiveMigration"]


@dataclass
class Fleet:
    """Hosts as they told of themselves, and those who were woken."""

    woken: list[str] = field(default_factory=list)
    version: int = 0

    def __post_init__(self) -> None:
        self.ledger = Ledger(HOST_KIND)
        self.cache = Cache(HOSTS)
        self.certificates = Certificates(self.ledger, self.woken.append)
        self.ledger.follow_hosts(self.cache)

    def tell(self, name: str, capabilities: list[str] | None) -> None:
        """Have a host say what it can do; None is one that was not asked yet."""
        self.cache.seen(self.body(name, capabilities))

    def body(self, name: str, capabilities: list[str] | None) -> dict[str, Any]:
        self.version += 1
        body = host(name)
        meta = {"uid": name, "generation": 1, "resourceVersion": str(self.version)}
        body["metadata"] |= meta
        body["status"] = {} if capabilities is None else {"capabilities": capabilities}
        return body

    def place(self, on: str) -> None:
        """Have a machine hold something of a host."""
        self.ledger.assume(f"vm-{on}", Held(on, SIZE))

    def lacking(self, on: str, *, encrypted: bool = True) -> str | None:
        machine = Machine(
            uid=f"vm-{on}",
            namespace="n",
            name="m",
            wanted=SIZE,
            image="builtin://tiny",
            power=Power.ON,
            host=on,
            move_policy=MovePolicy(encrypted=encrypted),
        )
        return self.certificates.lacking(machine, on)


@pytest.fixture
def fleet() -> Fleet:
    return Fleet()


def test_only_machines_that_are_to_travel_encrypted_ask_for_certificates(fleet: Fleet) -> None:
    """All others move as ever."""
    fleet.tell("a", ["LiveMigration"])
    assert fleet.lacking("a", encrypted=False) is None
    said = fleet.lacking("a") or ""
    assert "host a has no certificates" in said
    assert "spec.libvirt.migration.tls" in said
    assert "spec.migrationPolicy.encrypted" in said


def test_certificates_on_one_host_alone_are_of_no_use(fleet: Fleet) -> None:
    """There is nowhere to go; a host that is alone says nothing of that, as ever."""
    fleet.tell("a", ABLE)
    assert fleet.lacking("a") is None
    fleet.tell("b", ["LiveMigration"])
    assert "no other host has certificates" in (fleet.lacking("a") or "")
    fleet.tell("c", ABLE)
    assert fleet.lacking("a") is None


def test_a_host_that_was_not_asked_yet_is_not_accused(fleet: Fleet) -> None:
    """What nobody knows is no obstacle: the move itself is refused where it must be."""
    fleet.tell("a", None)
    fleet.tell("b", None)
    assert fleet.lacking("a") is None


def test_those_are_looked_at_again_for_whom_the_answer_changes_and_nobody_else(
    fleet: Fleet,
) -> None:
    """A fleet has thousands of machines, and hosts tell something new every few seconds."""
    for name in ("a", "b", "c"):
        fleet.tell(name, ["LiveMigration"])
        fleet.place(name)
    for name in ("a", "b"):
        fleet.lacking(name)
    fleet.lacking("c", encrypted=False)
    fleet.tell("a", ["LiveMigration", "Console"])
    assert fleet.woken == []
    fleet.tell("a", ABLE)
    assert fleet.woken == ["vm-a"]  # the others' own hosts still have none
    fleet.woken.clear()
    fleet.tell("b", ABLE)
    assert sorted(fleet.woken) == ["vm-a", "vm-b"]
    assert fleet.lacking("a") is None


def test_a_host_that_goes_takes_its_certificates_along(fleet: Fleet) -> None:
    """Those who could have gone there are told."""
    fleet.tell("a", ABLE)
    fleet.tell("b", ABLE)
    fleet.tell("c", ["LiveMigration"])
    fleet.place("a")
    assert fleet.lacking("a") is None
    fleet.cache.gone(fleet.body("b", ABLE))
    assert fleet.woken == ["vm-a"]
    assert "no other host has" in (fleet.lacking("a") or "")
