"""Why a machine should leave its host, and whether it may: decisions over values alone."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from novacron.controllers.ledger import Ledger
from novacron.core.conditions import Condition
from novacron.core.driver import Capability
from novacron.core.eviction import leaves
from novacron.core.host import DeclaredHost
from novacron.core.machine import Machine, Power
from novacron.core.migration import (
    CPU_INCOMPATIBLE,
    DEVICES_STAY,
    DISKS_OUT_OF_REACH,
    HAS_DEVICES,
    HAS_SNAPSHOTS,
    HOST_BACK,
    HOST_LOST,
    LIVE_FORBIDDEN,
    NO_CERTIFICATES,
    NO_OTHER_HOST,
    NOT_ALLOWED,
    uncertified,
)
from novacron.core.move import MoveReport, MoveResult
from novacron.core.offer import Offer, OfferKind
from novacron.core.taint import Taint
from novacron.scheduler import unwelcome

__all__ = ["Bid", "Refused", "bid_of", "live_or_not"]

# Reasons of LiveMigratable for which stopping the machine would not help.
NEVER = frozenset({"DriverCannotMigrate", NO_CERTIFICATES})

# Others that are foreseen only: whoever is asked to take it says whether that is so.
FORESEEN = frozenset({NO_OTHER_HOST, HAS_SNAPSHOTS, DISKS_OUT_OF_REACH})

# Reasons for which a machine did not begin anew that are none of the host where it was to.
UNTRIED = frozenset({HOST_BACK, HOST_LOST})

CONSENT = "and moves only if it may be stopped (--stop-allowed)"

# As many as a drain moves at a time unless it is told otherwise.
EVICTED_AT_ONCE = 2
ENCRYPTION = Capability.ENCRYPTED_MIGRATION.value
ENCRYPTED = frozenset({Offer(OfferKind.CAPABILITY, ENCRYPTION)})
REACHED = frozenset({Offer(OfferKind.CAPABILITY, Capability.MIGRATION_TARGET.value)})


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a machine stays where it is."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Bid:
    """Somebody wants a machine elsewhere.

    ``urgent``: a person waits for the answer. ``lost``: its host is known to be switched off.
    ``at_once`` is how many may leave the host at the same time. ``evicted``: its host has a taint
    that it does not tolerate.
    """

    why: str
    to: str | None = None
    stop_allowed: bool = False
    urgent: bool = False
    lost: bool = False
    at_once: int | None = None
    evicted: bool = False

    def sought(self, machine: Machine, source: DeclaredHost | None, *, live: bool) -> Machine:
        """Return the machine as the scheduler is asked to place it, who comes from ``source``."""
        alike = frozenset({source.kind} if source else ())
        # Where it never got to there is nothing that could be taken for its disks.
        known = machine.leftovers - machine.unreached if self.lost else machine.leftovers
        return replace(
            machine,
            wanted=machine.reserved or machine.wanted,
            only_host=self.to,
            leaving=machine.host,
            refused_hosts=machine.refused_hosts | known | self._avoided(machine.last_move),
            keeps_cpu=live,
            needs=machine.needs | alike | self._needs(machine),
        )

    def _needs(self, machine: Machine) -> frozenset[Offer]:
        """Return what it takes to come from another host; to begin anew takes nothing."""
        if self.lost:
            return frozenset()
        return REACHED | ENCRYPTED if machine.move_policy.encrypted else REACHED

    def _avoided(self, last: MoveReport | None) -> frozenset[str]:
        """Return the host that will not do a moment later either, unless a person insists.

        One that could not reach its disks, or cannot give it the CPU that it runs with.
        """
        if last is None or last.target is None or last.result is not MoveResult.FAILED:
            return frozenset()
        unmatched = last.reason == CPU_INCOMPATIBLE and not self.urgent
        hopeless = last.reason not in UNTRIED if self.lost else unmatched
        return frozenset({last.target} if hopeless else ())


def bid_of(
    machine: Machine, ledger: Ledger, now: datetime, grace: timedelta
) -> Bid | timedelta | None:
    """Return why the machine should leave its host, if it should; or when to ask again."""
    assert machine.host is not None
    host = ledger.declared.get(machine.host)
    if host is not None and host.is_fenced and host.down_since is not None:
        left = host.down_since + grace - now
        if left > timedelta(0):
            return left
        return Bid(f"host {host.name} is off", lost=True)
    if (asked := machine.move_request) is not None:
        return Bid("asked for", asked.to, asked.stop_allowed, urgent=True)
    if host is not None and host.drain is not None:
        return Bid(
            f"host {host.name} is drained",
            stop_allowed=host.drain.stop_allowed,
            at_once=host.drain.at_once,
        )
    evicted = _by_taints(machine, host, now) if host is not None else None
    if machine.wishes_changed and not isinstance(evicted, Bid):
        return _by_wishes(machine, ledger, host) or evicted
    return evicted


def _by_taints(machine: Machine, host: DeclaredHost, now: datetime) -> Bid | timedelta | None:
    """Return a bid where nothing may run on the host that does not tolerate it.

    A machine that is off does not run there, so it is left alone until it is started.
    """
    if machine.power is Power.OFF:
        return None
    since = {each.taint: each.since for each in host.evictions}
    taint = leaves(host.all_taints, machine.tolerations, since, now)
    if not isinstance(taint, Taint):
        return taint
    return Bid(f"host {host.name} has taint {taint}", at_once=EVICTED_AT_ONCE, evicted=True)


def _by_wishes(machine: Machine, ledger: Ledger, host: DeclaredHost | None) -> Bid | None:
    """Return a bid where the host is not any more what the machine's owner wants."""
    if host is None or (said := unwelcome(ledger.table, machine, host.name)) is None:
        return None
    return Bid(f"host {host.name} {said}")


def live_or_not(machine: Machine, bid: Bid, source: DeclaredHost | None) -> bool | Refused:
    """Say whether the machine moves while it runs, is stopped for it, or stays on ``source``."""
    if bid.lost:
        return False
    movable = _as_it_is_now(machine, machine.condition("LiveMigratable"))
    if (refused := _hopeless(machine, bid, source, movable)) is not None:
        return refused
    if movable is not None and movable.reason in FORESEEN:
        movable = None  # who chooses a host says of each why not, and one may just have come
    if machine.power is Power.OFF or (machine.devices and bid.stop_allowed):
        return False
    if machine.devices:
        return Refused(HAS_DEVICES, DEVICES_STAY)
    return _while_it_runs(machine, bid, movable)


def _as_it_is_now(machine: Machine, written: Condition | None) -> Condition | None:
    """Return what was written of moving live without what its owner has changed since.

    Whoever asks for a move may say in the same breath how it is to be done.
    """
    if not machine.live_migration_allowed:
        return Condition("LiveMigratable", "False", NOT_ALLOWED, LIVE_FORBIDDEN)
    if written is not None and written.reason == NOT_ALLOWED:
        return None
    if written is not None and written.reason == NO_CERTIFICATES:
        return written if machine.move_policy.encrypted else None
    return written


def _hopeless(
    machine: Machine, bid: Bid, source: DeclaredHost | None, movable: Condition | None
) -> Refused | None:
    """Return why a machine stays, whether it may be stopped or not."""
    if bid.to is not None and bid.to == machine.host:
        return Refused("AlreadyThere", f"it is on host {bid.to}")
    if machine.move_policy.encrypted and source is not None and not source.can(ENCRYPTION):
        return Refused(NO_CERTIFICATES, uncertified(f"host {source.name} has no"))
    if movable is not None and movable.reason in NEVER:
        return Refused(movable.reason, movable.message)
    if (unmade := machine.condition("Created")) is not None:
        return Refused("NotCreated", f"it is not made yet: {unmade.message}")
    return None


def _while_it_runs(machine: Machine, bid: Bid, movable: Condition | None) -> bool | Refused:
    if movable is not None and movable.status == "False":
        return False if bid.stop_allowed else Refused(movable.reason, movable.message)
    ready, prepared = machine.condition("Ready"), machine.condition("Prepared")
    if (ready is not None and ready.status == "True") or prepared is not None:
        return True  # it runs, though what was to be done in it may have failed
    if bid.stop_allowed:
        return False
    why = ready.message if ready else "it was not looked at yet"
    return Refused("NotRunning", f"it does not run as it should, {CONSENT}: {why}")
