"""One driver for each declared host, made when the host is declared and anew when it changes."""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace

from novacron.controllers.ports import HostKind
from novacron.core.driver import Driver, Watching
from novacron.core.errors import Rejected
from novacron.core.host import DeclaredHost
from novacron.runtime.cache import Cache, Change

__all__ = ["DriverPool", "MakeDriver"]

log = logging.getLogger(__name__)

MakeDriver = Callable[[DeclaredHost], Driver]


@dataclass(frozen=True, slots=True)
class _Connected:
    host: DeclaredHost
    driver: Driver

    def serves(self, host: DeclaredHost) -> bool:
        """Say whether this driver is still right for the host as it is declared now."""
        return _connects_by(self.host) == _connects_by(host)


def _connects_by(host: DeclaredHost) -> tuple[object, ...]:
    return (
        host.driver,
        host.endpoint,
        host.credentials,
        host.node,
        host.settings,
        host.overcommit,
    )


@dataclass(slots=True)
class DriverPool:
    """Satisfies ``core.driver.Drivers``; also remembers which hosts do not answer.

    ``news`` gets the UID of every machine of which a host says by itself that it changed. ``made``
    and ``left`` are told of every driver that is made, and of every host that has none any more.
    """

    kind: HostKind
    makers: Mapping[str, MakeDriver]
    news: Callable[[str], None] | None = None
    made: Callable[[str, Driver], None] | None = None
    left: Callable[[str], None] | None = None
    _connected: dict[str, _Connected] = field(default_factory=dict)
    _trouble: dict[str, str] = field(default_factory=dict)
    _unusable: dict[str, str] = field(default_factory=dict)
    _closing: set["asyncio.Task[None]"] = field(default_factory=set)

    def follow(self, cache: Cache) -> None:
        """Keep drivers for the hosts in a cache."""
        cache.subscribe(self._changed)

    def named(self, host: str) -> Driver | None:
        """Return the driver for a host, or None when no such host is known.

        What is written as an address needs no declaration: ``kubevirt://`` and the like.
        """
        if (connected := self._connected.get(host)) is not None:
            return connected.driver
        driver, separator, _ = host.partition("://")
        if not separator or driver not in self.makers:
            return None
        self._connect(DeclaredHost(uid="", name=host, driver=driver, endpoint=host))
        return self._connected[host].driver

    def leave_unused(self, used: Callable[[str], Collection[str]]) -> None:
        """Let go of what is reached by an address alone and has no machines any more."""
        for name, connected in list(self._connected.items()):
            if connected.host.endpoint == name and not used(name):
                self._let_go(name)

    def hosts(self) -> list[str]:
        """Return the names of all hosts there is a driver for."""
        return list(self._connected)

    def is_declared(self, host: str) -> bool:
        """Say whether there is such a host, also one that cannot be used as it is declared."""
        return host in self._unusable or self.named(host) is not None

    def unusable(self) -> Mapping[str, str]:
        """Return hosts that nobody can ask, because of how they are declared, and why."""
        return self._unusable

    def trouble(self, host: str) -> str | None:
        """Return why a host does not answer, or None when it does as far as anyone knows."""
        return self._trouble.get(host)

    def is_fenced(self, host: str) -> bool:
        """Say whether somebody made sure that the host is off and stays so, and it is silent.

        As it is written down: whoever decides where its machines begin anew goes by the same.
        """
        found = self._connected.get(host)
        return found is not None and found.host.is_fenced and found.host.down_since is not None

    def is_written_off(self, host: str) -> bool:
        """Say whether a machine's owner is enough to forget what is there, should it be silent.

        Where somebody can say that a host is off, somebody has to: its guests might run for ever.
        """
        found = self._connected.get(host)
        declared = host in self._unusable or (found is not None and found.host.endpoint != host)
        return not declared or self.is_fenced(host)

    def answered(self, host: str) -> bool:
        """Note that a host answers; say whether that is news."""
        return self._trouble.pop(host, None) is not None

    def failed(self, host: str, why: str) -> bool:
        """Note that a host does not answer; say whether that is news."""
        news = host not in self._trouble
        self._trouble[host] = why
        return news

    async def close(self) -> None:
        """Let go of all connections."""
        for name in self.hosts():
            self._let_go(name)
        if self._closing:
            await asyncio.wait(self._closing)

    def _changed(self, change: Change) -> None:
        name = change.key.name
        self._unusable.pop(name, None)
        if change.object is None:
            self._let_go(name)
            return
        try:
            host = self.kind.host(change.object)
            self._connect(host)
        except Rejected as error:
            log.warning("host %s cannot be used: %s", name, error)
            self._unusable[name] = f"host {name} cannot be used: {error}"
            self._let_go(name)

    def _connect(self, host: DeclaredHost) -> None:
        current = self._connected.get(host.name)
        if current is not None and current.serves(host):
            self._connected[host.name] = replace(current, host=host)
            return
        maker = self.makers.get(host.driver)
        if maker is None:
            raise Rejected(f"no driver is called {host.driver}; known: {', '.join(self.makers)}")
        driver = maker(host)
        if isinstance(driver, Watching) and self.news is not None:
            driver.on_change(self.news)
        self._let_go(host.name)
        self._connected[host.name] = _Connected(host, driver)
        if self.made is not None:
            self.made(host.name, driver)

    def _let_go(self, name: str) -> None:
        self._trouble.pop(name, None)
        connected = self._connected.pop(name, None)
        if connected is not None:
            if self.left is not None:
                self.left(name)
            task = asyncio.get_running_loop().create_task(connected.driver.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
