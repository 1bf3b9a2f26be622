"""The variables of a container, and `$(NAME)` in its command, as Kubernetes documents them."""

import base64

import pytest

from novacron.localcluster.node.environment import CONFIG_MAPS, Unmet, Variables, expand
from novacron.runtime.resource import SECRETS

POD = {
    "metadata": {"name": "web-0", "namespace": "shop", "uid": "1", "labels": {"app": "web"}},
    "spec": {"nodeName": "n1", "serviceAccountName": "sa", "containers": []},
    "status": {"podIP": "10.0.0.7"},
}
OBJECTS = {
    (CONFIG_MAPS, "settings"): {"data": {"COLOUR": "blue"}},
    (SECRETS, "door"): {"data": {"KEY": base64.b64encode(b"open").decode()}},
}


def variables(*env, env_from=(), given=None, container=None):
    """Return the variables of a container with this environment."""
    described = {"name": "c", "env": list(env), "envFrom": list(env_from), **(container or {})}
    maker = Variables(POD, lambda *name: OBJECTS.get(name), {"cpu": "4", "memory": "8Gi"})
    return maker.of(described, given or {})


def value_from(name, **source):
    return {"name": name, "valueFrom": source}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$(A)-$(B)", "1-2"),
        ("$(C)", "$(C)"),
        ("$$(A)", "$(A)"),
        ("$$$(A)", "$1"),
        ("$A ${A}", "$A ${A}"),
        ("$(A", "$(A"),
        ("$()", "$()"),
        ("100$", "100$"),
    ],
)
def test_references_are_replaced_and_all_else_is_left(text, expected):
    """What a reference does not name stays as it is: a shell in the container may want it."""
    assert expand(text, {"A": "1", "B": "2"}) == expected


def test_a_variable_sees_those_before_it_and_not_those_after():
    """Order is what makes it predictable."""
    found = variables(
        {"name": "LATE", "value": "$(EARLY)"},
        {"name": "EARLY", "value": "x"},
        {"name": "URL", "value": "http://$(EARLY)"},
    )
    assert found == {"LATE": "$(EARLY)", "EARLY": "x", "URL": "http://x"}


def test_what_the_container_says_wins_over_what_it_is_given():
    """So that an image's PATH can be replaced."""
    assert variables({"name": "PATH", "value": "/mine"}, given={"PATH": "/bin", "HOME": "/"}) == {
        "PATH": "/mine",
        "HOME": "/",
    }


def test_values_come_from_fields_resources_secrets_and_maps():
    """Everything that `valueFrom` can name."""
    found = variables(
        value_from("NAME", fieldRef={"fieldPath": "metadata.name"}),
        value_from("APP", fieldRef={"fieldPath": "metadata.labels['app']"}),
        value_from("IP", fieldRef={"fieldPath": "status.podIP"}),
        value_from("CPU", resourceFieldRef={"resource": "limits.cpu"}),
        value_from("MEM", resourceFieldRef={"resource": "requests.memory", "divisor": "1Mi"}),
        value_from("KEY", secretKeyRef={"name": "door", "key": "KEY"}),
        value_from("COLOUR", configMapKeyRef={"name": "settings", "key": "COLOUR"}),
        container={"resources": {"requests": {"memory": "64Mi"}}},
    )
    assert found == {
        "NAME": "web-0",
        "APP": "web",
        "IP": "10.0.0.7",
        "CPU": "4",
        "MEM": "64",
        "KEY": "open",
        "COLOUR": "blue",
    }


def test_whole_maps_come_with_a_prefix():
    """And a variable of the same name replaces one of them."""
    found = variables(
        {"name": "S_KEY", "value": "own"},
        env_from=[
            {"configMapRef": {"name": "settings"}},
            {"prefix": "S_", "secretRef": {"name": "door"}},
        ],
    )
    assert found == {"COLOUR": "blue", "S_KEY": "own"}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ({"name": "nothing", "key": "KEY"}, "Secret nothing does not exist"),
        ({"name": "door", "key": "OTHER"}, "Secret door has no key OTHER"),
    ],
)
def test_what_is_missing_is_named_unless_it_is_optional(reference, message):
    """The message is what `kubectl describe` shows; the value never is."""
    with pytest.raises(Unmet, match=message):
        variables(value_from("X", secretKeyRef=reference))
    assert variables(value_from("X", secretKeyRef={**reference, "optional": True})) == {}


def test_an_unknown_source_is_refused():
    """Rather than a variable that is silently not there."""
    with pytest.raises(Unmet, match="fileKeyRef"):
        variables(value_from("X", fileKeyRef={"key": "a"}))
