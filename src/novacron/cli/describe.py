"""All about one machine on one page: fields, conditions, what happened to it."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from novacron.cli.kinds import status
from novacron.cli.output import age, table
from novacron.runtime.resource import EVENTS, Object

if TYPE_CHECKING:
    from novacron.runtime.client import Client

__all__ = ["description", "events_of"]

CONDITION_TITLES = ("TYPE", "STATUS", "REASON", "SINCE", "MESSAGE")
EVENT_TITLES = ("LAST", "TYPE", "REASON", "COUNT", "MESSAGE")


async def events_of(client: "Client", item: Object) -> list[Object]:
    """Return the object's events, the oldest first."""
    metadata = item["metadata"]
    selector = f"involvedObject.uid={metadata['uid']}"
    events = await client.list(EVENTS, metadata.get("namespace") or "default", selector=selector)
    return sorted(events, key=_moment)


def description(item: Object, events: Sequence[Object]) -> str:
    """Return the page."""
    width = max(len(name) for name, _ in _fields(item))
    parts = ["\n".join(f"{name:<{width}}  {value}" for name, value in _fields(item))]
    conditions = status(item).get("conditions") or []
    if conditions:
        parts.append("Conditions\n" + _indented(table(CONDITION_TITLES, _conditions(conditions))))
    rows = [_event(event) for event in events]
    parts.append("Events\n" + _indented(table(EVENT_TITLES, rows)) if rows else "Events  none")
    return "\n\n".join(parts)


def _fields(item: Object) -> Iterator[tuple[str, str]]:
    metadata, spec, seen = item["metadata"], item.get("spec") or {}, status(item)
    template = (spec.get("template") or {}).get("spec") or {}
    wanted = template.get("resources") or {}
    yield "Name", metadata["name"]
    yield "Namespace", metadata.get("namespace", "")
    yield "Age", age(metadata.get("creationTimestamp"))
    yield "Wanted", "running" if spec.get("running") else "stopped"
    yield "Phase", seen.get("phase") or "-"
    yield "Node", seen.get("nodeName") or "-"
    yield "Addresses", ", ".join(seen.get("ipAddresses") or ()) or "-"
    yield "Machine ID", seen.get("vmID") or "-"
    yield "Image", (template.get("image") or {}).get("source") or "-"
    yield "Size", ", ".join(f"{name} {amount}" for name, amount in wanted.items()) or "-"
    for name, used in (seen.get("resources") or {}).items():
        if isinstance(used, dict) and used.get("used"):
            yield f"Used {name}", f"{used['used']} of {used.get('available', '?')}"
    if snapshots := seen.get("snapshots"):
        last = snapshots[-1]
        yield "Snapshots", f"{len(snapshots)}, the last {last['name']} {age(last['createdAt'])} ago"
    if metadata.get("deletionTimestamp"):
        yield "Deleting", f"since {age(metadata['deletionTimestamp'])}"


def _conditions(conditions: Sequence[dict[str, Any]]) -> list[list[object]]:
    return [
        [
            each.get("type"),
            each.get("status"),
            each.get("reason"),
            age(each.get("lastTransitionTime")),
            each.get("message"),
        ]
        for each in conditions
    ]


def _moment(event: Object) -> str:
    series = event.get("series") or {}
    moments = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((moment for moment in moments if moment), "") or ""


def _event(event: Object) -> list[object]:
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    return [
        age(_moment(event)),
        event.get("type"),
        event.get("reason"),
        count,
        event.get("message"),
    ]


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
