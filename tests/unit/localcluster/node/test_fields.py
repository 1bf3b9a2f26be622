"""What a pod can say of itself to its containers."""

import pytest

from novacron.localcluster.node.fields import UnknownField, field_value, quantity, resource_value

POD = {
    "metadata": {
        "name": "web",
        "namespace": "shop",
        "uid": "1",
        "labels": {"b": "2", "a": "1"},
        "annotations": {"note": 'two\nlines "quoted"'},
    },
    "spec": {},
}


def test_all_labels_are_one_line_each():
    """Sorted and quoted, so that no value can pass for another label."""
    assert field_value(POD, "metadata.labels") == 'a="1"\nb="2"'
    assert field_value(POD, "metadata.annotations") == 'note="two\\nlines \\"quoted\\""'
    assert field_value(POD, "metadata.annotations['note']") == 'two\nlines "quoted"'
    assert field_value(POD, "metadata.labels['none']") == ""


def test_an_unknown_field_is_named():
    """A typing error shows at once."""
    with pytest.raises(UnknownField, match=r"status\.phase"):
        field_value(POD, "status.phase")


@pytest.mark.parametrize(
    ("text", "value"),
    [("2", 2), ("500m", 0.5), ("1.5", 1.5), ("64Mi", 64 * 2**20), ("1k", 1000), ("1e3", 1000)],
)
def test_quantities(text, value):
    """Those that Kubernetes writes."""
    assert quantity(text) == value


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ({"resource": "limits.cpu"}, "1"),
        ({"resource": "limits.cpu", "divisor": "1m"}, "500"),
        ({"resource": "limits.memory", "divisor": "1Gi"}, "8"),
        ({"resource": "requests.memory"}, "0"),
    ],
)
def test_limits_are_rounded_up_and_default_to_the_node(reference, expected):
    """Half a core is at least one thread; no limit is all there is."""
    container = {"resources": {"limits": {"cpu": "500m"}}}
    assert resource_value(container, reference, {"memory": "8Gi"}) == expected
