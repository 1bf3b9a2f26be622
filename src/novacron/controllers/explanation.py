"""Why a machine is where it is, or why nowhere: the placer's decision made once more, aside.

Takes objects as they were just read and touches nothing, so that anyone who may read can ask.
"""

from collections.abc import Iterable

from novacron.controllers.ledger import Ledger
from novacron.controllers.ports import HostKind, PlacedKind
from novacron.core.errors import Rejected
from novacron.runtime.resource import Object
from novacron.scheduler import Decision, choose

__all__ = ["decide_again"]


def decide_again(
    host_kind: HostKind,
    kind: PlacedKind,
    obj: Object,
    *,
    hosts: Iterable[Object],
    machines: Iterable[Object],
    namespaces: Iterable[Object],
) -> Decision:
    """Decide where a machine would go now, as if it were not placed yet."""
    ledger = Ledger(host_kind)
    table = ledger.table
    for namespace in namespaces:
        metadata = namespace["metadata"]
        table.company.set_namespace(metadata["name"], metadata.get("labels") or {})
    for host in hosts:
        try:
            table.upsert(host_kind.host(host).seen_by_scheduler())
        except Rejected:
            continue  # the placer cannot use it either
    for other in machines:
        uid = other["metadata"]["uid"]
        if uid == obj["metadata"]["uid"]:
            continue
        ledger.settle(uid, other, kind)
        ledger.settle_move(uid, other, kind)  # one that moves takes room on both hosts
    return choose(table, kind.machine(obj))
