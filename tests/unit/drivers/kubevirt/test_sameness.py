"""Whether an object still says what was asked for."""

from hypothesis import given
from hypothesis import strategies as st

from novacron.drivers.kubevirt.sameness import difference

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(values)
def test_nothing_differs_from_itself(value):
    assert difference(value, value) is None


def test_what_a_webhook_fills_in_does_not_count():
    assert difference({"cpu": {"cores": 1, "model": "host"}}, {"cpu": {"cores": 1}}) is None


def test_a_difference_is_named_by_where_it_is():
    has = {"spec": {"disks": [{"name": "root", "bus": "sata"}]}}
    wants = {"spec": {"disks": [{"name": "root", "bus": "virtio"}]}}
    assert difference(has, wants) == "spec.disks[root].bus"


def test_an_entry_that_was_added_to_a_list_counts():
    """A disk that somebody plugged in by hand is one that nobody asked us for."""
    has = {"disks": [{"name": "root"}, {"name": "extra"}]}
    assert difference(has, {"disks": [{"name": "root"}]}) == "disks"


def test_order_does_not_count_where_entries_have_names():
    one, other = {"name": "a", "x": 1}, {"name": "b", "x": 2}
    assert difference([other, one], [one, other]) is None
