"""Notices what changed on hosts behind our back, with one call per host and interval."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from novacron.controllers.drivers import DriverPool
from novacron.controllers.ledger import Ledger, Owner
from novacron.controllers.measures import Measures
from novacron.core.driver import Inventory
from novacron.core.errors import DriverError, Unreachable
from novacron.core.machine import Observed, Usage

__all__ = ["InventoryWatch"]

log = logging.getLogger(__name__)

TROUBLE_AGAIN = timedelta(seconds=5)
JUST_NOW = timedelta(seconds=1)
# Rounds begin a little earlier or later than they should.
SLACK_SECONDS = 1.0


@dataclass(slots=True)
class InventoryWatch:
    """Asks hosts for all their machines and has those looked at that are not as before.

    ``wake`` gets the owner of a machine; it belongs to another process's shard or to none, then
    nothing happens. ``is_ours`` says which belong to this one: a host that has none of those is
    left to others. ``is_at_work`` is not true of a process that only stands by. Usage counts as a
    change only where it is worth a write.
    """

    drivers: DriverPool
    ledger: Ledger
    wake: Callable[[Owner], None]
    is_ours: Callable[[Owner], bool]
    is_at_work: Callable[[], bool]
    interval: timedelta
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    _before: dict[str, dict[str, Observed]] = field(default_factory=dict)
    _measures: dict[str, Measures] = field(default_factory=dict)
    _listed: dict[str, tuple[float, str, Observed]] = field(default_factory=dict)
    _looking: set[str] = field(default_factory=set)
    _news: list[set[str]] = field(default_factory=list)
    _asked: dict[str, Inventory] = field(default_factory=dict)
    _due: dict[str, float] = field(default_factory=dict)

    async def run(self) -> None:
        """Go round all hosts for ever."""
        async with asyncio.TaskGroup() as looks:
            while True:
                self.drivers.leave_unused(self.ledger.machines_on)
                hosts = [host for host in self.drivers.hosts() if self._concerns(host)]
                for host in self._to_be_asked(hosts):
                    self._looking.add(host)
                    looks.create_task(self._look(host))
                self._forget_all_but(hosts)
                await self.sleep(self._pause(hosts))

    def _pause(self, hosts: Iterable[str]) -> float:
        """Return how long nobody is to be asked: those who are silent are not waited for."""
        now = asyncio.get_running_loop().time()
        ends = {now + self.interval.total_seconds()}
        if any(self.drivers.trouble(host) for host in hosts):
            ends.add(now + TROUBLE_AGAIN.total_seconds())
        ends |= {due for host, due in self._due.items() if host not in self._looking}
        return min(ends) - now

    def _to_be_asked(self, hosts: Iterable[str]) -> list[str]:
        """Return who is to be asked now: each once in an interval, and who is silent more often.

        One that takes its time must not keep us from the others, and is not asked again meanwhile.
        """
        now = asyncio.get_running_loop().time()
        found = [
            host
            for host in hosts
            if host not in self._looking
            and (self.drivers.trouble(host) or self._due.get(host, now) <= now + SLACK_SECONDS)
        ]
        self._due |= dict.fromkeys(found, now + self.interval.total_seconds())
        return found

    def _forget_all_but(self, hosts: Iterable[str]) -> None:
        for host in (self._before.keys() | self._due.keys()) - set(hosts):
            self._before.pop(host, None)
            self._measures.pop(host, None)
            self._asked.pop(host, None)
            self._due.pop(host, None)

    def _concerns(self, host: str) -> bool:
        """Say whether this process has machines on a host, or waits for it to answer again."""
        if self.drivers.trouble(host):
            return True
        declared = self.ledger.declared.get(host)
        if declared is not None and declared.is_troubled and self.is_at_work():
            return True  # what is left there is to be removed when it is back
        owners = map(self.ledger.owners.get, self.ledger.machines_on(host))
        return any(owner is not None and self.is_ours(owner) for owner in owners)

    async def _look(self, host: str) -> None:
        try:
            await self.look_at(host)
        finally:
            self._looking.discard(host)

    async def look_at(self, host: str) -> bool:
        """Look at one host; say whether it answered."""
        driver: object = self.drivers.named(host)
        if not isinstance(driver, Inventory):
            return True
        news: set[str] = set()
        self._news.append(news)
        try:
            machines = await driver.machines(host)
        except DriverError as error:
            return self._failed(host, str(error))
        except Exception as error:
            # This one host is not worth all others, which nobody would look at any more.
            log.exception("looking at host %s failed in a way that is not known", host)
            return self._failed(host, f"looking at it failed: {type(error).__name__}: {error}")
        finally:
            self._news = [each for each in self._news if each is not news]
        returned = self.drivers.answered(host)
        # What its machines were refused may be had from a host that is declared otherwise by now.
        renewed = self._asked.get(host, driver) is not driver
        self._asked[host] = driver
        self._compare(host, machines, news, everything=returned or renewed)
        return True

    def _failed(self, host: str, why: str) -> bool:
        if self.drivers.failed(host, why):
            # Nobody can tell how they are any more, which is to be said of each.
            self._wake(self.ledger.machines_on(host))
        return False

    async def locate(self, uid: str, among: Collection[str] | None = None) -> str | None:
        """Ask every host for one machine; raise Unreachable when one that could have it is silent.

        Only for what no record tells any more: it costs a call per host. ``among`` are those that
        can have it, where that is known.
        """
        for host, why in self.drivers.unusable().items():
            if among is None or host in among:
                raise Unreachable(why)
        for host in self.drivers.hosts():
            if among is not None and host not in among:
                continue
            if not await self.look_at(host):
                raise Unreachable(self.drivers.trouble(host) or f"host {host} does not answer")
            if uid in self._before.get(host, ()):
                return host
        return None

    def usages(self) -> list[tuple[Owner, str, Usage]]:
        """Return what every known machine used when its host was last asked.

        Not of a host that is silent, nor of a machine that is another's by now: that would be told
        until the host answers, beside what the machine uses where it is.
        """
        answering = [host for host in self._before if not self.drivers.trouble(host)]
        return [
            (owner, host, usage)
            for host in answering
            for uid in self.ledger.machines_on(host) & self._before[host].keys()
            if (usage := self._before[host][uid].usage) is not None
            and (owner := self.ledger.owners.get(uid)) is not None
        ]

    def _compare(
        self, host: str, machines: Sequence[Observed], news: set[str], *, everything: bool
    ) -> None:
        before = self._before.get(host)
        now = {seen.uid: seen for seen in machines}
        self._before[host] = now
        if everything:
            # Also those of which it still has something that left it while it was away.
            self._wake(self.ledger.machines_on(host) | now.keys())
        elif before is not None:
            measures = self._measures.setdefault(host, Measures())
            others = {uid for uid, seen in now.items() if _differs(before, seen)}
            changed = others | measures.news({uid: seen.usage for uid, seen in now.items()}, others)
            # Of whom there were news during the look, it may tell what was before them.
            self._list(host, {uid: now[uid] for uid in changed - news})
            self._wake([*changed, *(before.keys() - now.keys())])

    def _list(self, host: str, changed: Mapping[str, Observed]) -> None:
        clock = asyncio.get_running_loop().time()
        recent = clock - JUST_NOW.total_seconds()
        kept = {uid: entry for uid, entry in self._listed.items() if entry[0] > recent}
        self._listed = kept | {uid: (clock, host, seen) for uid, seen in changed.items()}

    def just_listed(self, host: str, uid: str) -> Observed | None:
        """Return, once, how a machine was a moment ago, when it was seen to have changed."""
        since, where, seen = self._listed.pop(uid, (0.0, "", None))
        recent = asyncio.get_running_loop().time() - since < JUST_NOW.total_seconds()
        return seen if where == host and recent else None

    def noted(self, host: str, seen: Observed) -> None:
        """Take note of how a round left a machine: what the next look finds the same is no news."""
        self._outdate(seen.uid)
        self._before.setdefault(host, {})[seen.uid] = seen

    def heard(self, uid: str) -> None:
        """Have a machine looked at of which its host told news."""
        self._outdate(uid)
        self._wake([uid])

    def _outdate(self, uid: str) -> None:
        """Believe of a machine no list any more that was begun before now."""
        self._listed.pop(uid, None)
        for each in self._news:
            each.add(uid)

    def _wake(self, uids: Iterable[str]) -> None:
        for uid in uids:
            owner = self.ledger.owners.get(uid)
            if owner is not None:
                self.wake(owner)


def _differs(known: Mapping[str, Observed], seen: Observed) -> bool:
    """Say whether a machine is not as it was, whatever it uses."""
    before = known.get(seen.uid)
    return before is None or replace(before, usage=seen.usage) != seen
