"""Merging the difference gives the other document, whatever the two are."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from novacron.runtime.merge import merge_patch

# No 0 and 1 beside True and False: Python holds them equal, and no schema allows both.
SCALARS = st.none() | st.booleans() | st.integers(min_value=2) | st.sampled_from(["", "x", "yz"])
KEYS = st.sampled_from("abcd")
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
# A busy machine is no reason to fail.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def merge(target: Any, patch: Any) -> Any:
    """RFC 7386, section 2, word for word."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merge(result.get(key), value)
    return result


def without_nulls(value: Any) -> Any:
    """None means absent in objects; in lists it stays."""
    if not isinstance(value, dict):
        return value
    return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}


@PATIENT
@given(DOCUMENTS, DOCUMENTS)
def test_merging_the_difference_gives_the_other_document(before: dict, after: dict) -> None:
    """Otherwise a status write would leave something else than was decided."""
    merged = merge(before, merge_patch(before, after))
    assert without_nulls(merged) == without_nulls(after)


@PATIENT
@given(DOCUMENTS)
def test_a_document_does_not_differ_from_itself(document: dict) -> None:
    """No difference, no write."""
    assert merge_patch(document, document) == {}
    assert merge_patch(document, without_nulls(document)) == {}
    assert merge_patch(without_nulls(document), document) == {}


@PATIENT
@given(DOCUMENTS, DOCUMENTS)
def test_after_a_merge_nothing_is_left_to_merge(before: dict, after: dict) -> None:
    """A second round must find nothing to write, or it would write for ever."""
    merged = merge(before, merge_patch(before, after))
    assert merge_patch(merged, after) == {}
