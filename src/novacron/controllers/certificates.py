"""Says beforehand which machines cannot travel because they may only do so encrypted.

Asked in every round of such a machine, so it only looks at what hosts said of themselves; when
that changes, the machines are looked at again for which the answer is another one.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from novacron.controllers.ledger import Ledger
from novacron.core.driver import Capability
from novacron.core.machine import Machine
from novacron.core.migration import uncertified

__all__ = ["Certificates"]


@dataclass(slots=True)
class Certificates:
    """Which hosts have certificates for machines that travel encrypted.

    ``wake`` gets the UID of a machine that is to be looked at again.
    """

    ledger: Ledger
    wake: Callable[[str], None]
    _able: dict[str, bool] = field(default_factory=dict)
    _able_count: int = 0
    _told: dict[str, str | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.ledger.on_host(self.host_changed)

    def lacking(self, machine: Machine, host: str | None) -> str | None:
        """Return what keeps a machine on a host from travelling, if that are certificates."""
        if host is None or not machine.move_policy.encrypted:
            return None
        answer = self._told[host] = self._answer(host)
        return answer

    def _answer(self, host: str) -> str | None:
        able = self._able.get(host, True)
        if not able:
            return uncertified(f"host {host} has no")
        others = len(self._able) - (host in self._able)
        able_others = self._able_count - (host in self._able)
        return uncertified("no other host has") if others and not able_others else None

    def host_changed(self, name: str) -> None:
        """Take note of what a host says now, and have the machines looked at that this is about."""
        host = self.ledger.declared.get(name)
        able = None if host is None else host.can(Capability.ENCRYPTED_MIGRATION.value)
        before = self._able.get(name)
        if able == before:
            return
        self._able_count += (able is True) - (before is True)
        if able is None:
            del self._able[name]
            self._told.pop(name, None)
        else:
            self._able[name] = able
        self._tell()

    def _tell(self) -> None:
        for host, before in self._told.items():
            if (answer := self._answer(host)) != before:
                self._told[host] = answer
                for uid in self.ledger.machines_on(host):
                    self.wake(uid)
