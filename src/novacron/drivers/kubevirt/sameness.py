"""Whether an object still says what was asked for, whatever else was added to it."""

__all__ = ["difference"]


def difference(has: object, wants: object, where: str = "") -> str | None:
    """Return where an object says something else than was asked for; None when nowhere.

    What was not asked for does not count in mappings, for webhooks fill in what is usual; in lists
    it does, which are matched by name where they have names.
    """
    if isinstance(wants, dict):
        return _of_mappings(has, wants, where)
    if isinstance(wants, list):
        return _of_lists(has, wants, where)
    return None if has == wants else where or "it"


def _of_mappings(has: object, wants: dict[str, object], where: str) -> str | None:
    if not isinstance(has, dict):
        # An empty mapping asks for nothing in particular, and may be left out by the server.
        return None if not wants and has is None else where or "it"
    for name, value in wants.items():
        found = difference(has.get(name), value, f"{where}.{name}" if where else name)
        if found is not None:
            return found
    return None


def _of_lists(has: object, wants: list[object], where: str) -> str | None:
    if not isinstance(has, list) or len(has) != len(wants):
        return None if not wants and has is None else where or "it"
    known, asked = _by_name(has), _by_name(wants)
    for label, each in asked.items():
        found = difference(known.get(label), each, f"{where}[{label}]")
        if found is not None:
            return found
    return None


def _by_name(entries: list[object]) -> dict[object, object]:
    """Return the entries of a list by their names, or by their places where they have none."""
    return {
        each["name"] if isinstance(each, dict) and "name" in each else number: each
        for number, each in enumerate(entries)
    }
