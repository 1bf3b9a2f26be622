"""Every form of field that the generator writes works on a real API server as it is meant."""

import json
from datetime import datetime
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from api import Refused
from declared import Object, install
from novacron.crd import (
    Atomic,
    CustomResource,
    IntOrString,
    ListMap,
    ListSet,
    Model,
    PositiveQuantity,
    PreserveUnknown,
    Quantity,
    Rule,
    Scale,
    kind,
)
from novacron.crd.manifest import manifest, to_yaml
from novacron.localcluster.controlplane import ControlPlane


class Item(Model):
    """An item."""

    name: str
    note: str = "y"


class GadgetSpec(Model):
    """One field for everything that a type can say."""

    replicas: int = 1
    items: Annotated[list[Item], ListMap("name")] = []
    tags: Annotated[list[str], ListSet()] = []
    order: Annotated[list[str] | None, Atomic()] = None
    pair: Annotated[dict[str, str], Atomic()] = {}
    free: Annotated[dict[str, Any], PreserveUnknown()] = {}
    share: Annotated[float, Field(gt=0, lt=1)] = 0.5
    port: IntOrString | None = None
    size: PositiveQuantity = "1Gi"
    seen: Quantity = "0"
    since: datetime | None = None
    colour: Literal["red"] = "red"
    first: Annotated[Item, Rule("self.name != 'x'", "x is taken")] = Item(name="a")


class GadgetStatus(Model):
    replicas: int = 0
    selector: str | None = None


GADGET: Any = {"group": "test.novacron.io", "scale": Scale(selector_path=".status.selector")}


@kind(version="v2", name="Gadget", **GADGET)
class Gadget(CustomResource):
    """A gadget."""

    spec: GadgetSpec = GadgetSpec()
    status: GadgetStatus | None = None


@kind(version="v1", name="Gadget", storage=False, **GADGET)
class OldGadget(CustomResource):
    """A gadget as it was."""

    spec: GadgetSpec = GadgetSpec()
    status: GadgetStatus | None = None


@pytest.fixture(scope="module", autouse=True)
def gadgets(plane: ControlPlane) -> None:
    """Define gadgets in both versions."""
    install(plane, to_yaml(manifest(Gadget, OldGadget)), Gadget.__kind__.full_name)


def gadget(version: str = "v2", **spec: Any) -> Object:
    return {
        "apiVersion": f"test.novacron.io/{version}",
        "kind": "Gadget",
        "metadata": {"name": "gadget"},
        "spec": spec,
    }


def test_every_form_of_field_works_on_the_server(create) -> None:
    """What the generator writes is defaulted, kept and checked as meant."""
    spec = create(gadget(free={"any": ["thing"]}, port="web", items=[{"name": "a"}]))["spec"]
    assert spec["free"] == {"any": ["thing"]}
    assert spec["items"] == [{"name": "a", "note": "y"}]
    assert (spec["size"], spec["seen"], spec["share"]) == ("1Gi", "0", 0.5)
    assert spec["first"] == {"name": "a", "note": "y"}


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"tags": ["a", "a"]}, "Duplicate value"),
        ({"share": 1}, "should be less than 1"),
        ({"seen": "x"}, "should match"),
        ({"colour": "blue"}, 'supported values: "red"'),
        ({"first": {"name": "x"}}, "x is taken"),
        ({"since": "yesterday"}, "must be of type date-time"),
    ],
)
def test_every_form_of_field_is_checked_by_the_server(check, spec, sentence) -> None:
    """A marker that the server ignored would check nothing."""
    with pytest.raises(Refused) as refusal:
        check(gadget(**spec), Gadget.__kind__)
    assert sentence in str(refusal.value)


def test_two_served_versions_show_one_object(plane, namespace, create) -> None:
    """Written in the older version, read in the newer; the stored one is neither's business."""
    create(gadget("v1", replicas=2))
    read = ("get", "-n", namespace, "-o", "json")
    newer = json.loads(plane.kubectl(*read, "gadgets.v2.test.novacron.io", "gadget"))
    older = json.loads(plane.kubectl(*read, "gadgets.v1.test.novacron.io", "gadget"))
    assert newer["apiVersion"] == "test.novacron.io/v2"
    assert older["apiVersion"] == "test.novacron.io/v1"
    assert newer["spec"] == older["spec"]
    assert newer["spec"]["replicas"] == 2


def test_the_scale_subresource_changes_the_wanted_count(plane, namespace, create) -> None:
    """kubectl scale and autoscalers need to know nothing of the kind."""
    create(gadget(replicas=1))
    plane.kubectl("scale", "-n", namespace, "gadgets.test.novacron.io/gadget", "--replicas=3")
    path = f"/apis/test.novacron.io/v2/namespaces/{namespace}/gadgets/gadget/scale"
    scale = json.loads(plane.kubectl("get", "--raw", path))
    assert scale["spec"]["replicas"] == 3
