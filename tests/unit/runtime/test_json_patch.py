"""The patches by which defaults reach the API server."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from novacron.runtime.json_patch import diff

# Few keys, so that both documents often share some; with the two characters paths must escape.
KEYS = st.sampled_from(["a", "b", "a/b", "~", "~1", ""])
SCALARS = st.none() | st.booleans() | st.sampled_from([0, 1, 2, 1.0, 0.0, "", "x"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(KEYS, VALUES, max_size=5)


def apply(document: Any, operations: list[dict[str, Any]]) -> Any:
    """Apply a patch as the RFC says it, for the maps-only paths that diff writes."""
    for operation in operations:
        parts = operation["path"].split("/")[1:]
        *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in parts]
        place = document
        for parent in parents:
            place = place[parent]
        assert (last in place) is (operation["op"] != "add")
        if operation["op"] == "remove":
            del place[last]
        else:
            place[last] = operation["value"]
    return document


def exact(value: Any) -> str:
    """Tell values apart as JSON does: to Python 1, 1.0 and True are one."""
    if isinstance(value, dict):
        return repr(sorted((key, exact(each)) for key, each in value.items()))
    return repr([exact(each) for each in value] if isinstance(value, list) else value)


@given(OBJECTS, OBJECTS)
def test_applying_the_difference_gives_the_other_document(before: Any, after: Any) -> None:
    """Otherwise objects would be stored with something nobody wrote."""
    operations = diff(before, after)
    assert exact(apply(before, operations)) == exact(after)


@given(OBJECTS)
def test_equal_documents_have_no_difference(document: Any) -> None:
    """An empty patch spares the API server work on every create."""
    assert diff(document, document) == []


def test_an_added_default_is_one_small_operation() -> None:
    """Patches stay readable in audit logs: only what changed is named."""
    before = {"spec": {"cpu": 1}}
    after = {"spec": {"cpu": 1, "strategy": {"type": "Rolling"}}}
    added = {"op": "add", "path": "/spec/strategy", "value": {"type": "Rolling"}}
    assert diff(before, after) == [added]
