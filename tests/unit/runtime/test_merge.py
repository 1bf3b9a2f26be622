"""The difference between two documents, as the server will merge it."""

import pytest

from novacron.runtime.merge import merge_patch


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": 1}, {"a": None}, {"a": None}),
        ({}, {"a": 1}, {"a": 1}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": [1, 2]}, {"a": [2, 1]}, {"a": [2, 1]}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
        ({}, {"a": {}}, {"a": {}}),
    ],
)
def test_only_what_differs_is_in_the_patch(before: dict, after: dict, patch: dict) -> None:
    """A status write carries the difference and nothing else: fewer bytes, fewer conflicts."""
    assert merge_patch(before, after) == patch


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a": None}, {}),
        ({}, {"a": None}),
        ({"a": {}}, {"a": {"b": None}}),
        ({"a": None}, {"a": None}),
    ],
)
def test_a_null_that_is_nothing_new_is_no_difference(before: dict, after: dict) -> None:
    """None means absent: a write for it would be repeated every round and never change a thing."""
    assert merge_patch(before, after) == {}


def test_neither_document_is_changed() -> None:
    """The caller goes on using both."""
    before, after = {"a": {"b": 1}, "c": 1}, {"a": {"b": 2}}
    merge_patch(before, after)
    assert (before, after) == ({"a": {"b": 1}, "c": 1}, {"a": {"b": 2}})
