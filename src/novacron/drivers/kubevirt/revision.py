"""A VirtualMachine as it is to be, on top of what others wrote into it.

Pure: the object that is there and a plan in, the object to write out.
"""

from typing import Any

from novacron.core.machine import MachinePlan
from novacron.drivers.kubevirt.convert import virtual_machine
from novacron.drivers.kubevirt.names import APPLIED, RECIPE
from novacron.drivers.kubevirt.plugging import Plugs, joined

__all__ = ["revised"]

Object = dict[str, Any]


def revised(
    vm: Object, instance: Object | None, plan: MachinePlan, plugs: Plugs, *, owned: bool
) -> Object:
    """Return the VirtualMachine as it is to be; what others added beside our part stays."""
    wanted = virtual_machine(plan, owned=owned)
    kept = vm["spec"]["template"]
    asked = wanted["spec"]["template"]
    labels = {**(kept["metadata"].get("labels") or {}), **asked["metadata"]["labels"]}
    spec = joined(vm, instance, asked["spec"], plugs)
    for name in ("architecture", "terminationGracePeriodSeconds"):
        if name in kept["spec"]:
            spec[name] = kept["spec"][name]
    metadata = vm["metadata"]
    annotations = {
        **(metadata.get("annotations") or {}),
        **{name: wanted["metadata"]["annotations"][name] for name in (RECIPE, APPLIED)},
    }
    return {
        **vm,
        "metadata": {**metadata, "annotations": annotations, **_marked_again(metadata, wanted)},
        "spec": {
            **vm["spec"],
            "template": {"metadata": {**kept["metadata"], "labels": labels}, "spec": spec},
        },
    }


def _marked_again(metadata: Object, wanted: Object) -> Object:
    """Return the labels with ours in place, and our owner where somebody took that off."""
    labels = {**(metadata.get("labels") or {}), **wanted["metadata"]["labels"]}
    owners = metadata.get("ownerReferences") or wanted["metadata"].get("ownerReferences")
    return {"labels": labels} | ({"ownerReferences": owners} if owners else {})
