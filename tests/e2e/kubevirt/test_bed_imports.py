"""A bed in which images can be imported, as where CDI is installed."""

from collections.abc import Iterator
from typing import Any

import pytest

from kubevirt_bed import FAIL, HOLD, KubeVirtBed, new_bed, stop_bed, virtual_machine

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubeVirtBed]:
    own = new_bed(tmp_path_factory.mktemp("imports"), imports=True)
    try:
        yield own
    finally:
        stop_bed(own)


def _from_web(name: str) -> dict[str, Any]:
    source = {"http": {"url": "http://images.example/disk.qcow2"}}
    storage = {"resources": {"requests": {"storage": "5Gi"}}}
    return {"metadata": {"name": name}, "spec": {"source": source, "storage": storage}}


def _import(bed: KubeVirtBed, name: str) -> dict[str, Any]:
    return (bed.get("datavolumes", name) or {}).get("status") or {}


def test_a_machine_waits_for_its_image(bed: KubeVirtBed) -> None:
    template = _from_web("waiter-root")
    template["metadata"]["annotations"] = {HOLD: "true"}
    body = virtual_machine("waiter", "root", dataVolumeTemplates=[template])
    spec = body["spec"]["template"]["spec"]
    spec["volumes"] = [{"name": "root", "dataVolume": {"name": "waiter-root"}}]
    bed.create("virtualmachines", body)
    bed.wait("no progress", lambda: _import(bed, "waiter-root").get("progress") == "42.00%")
    bed.wait("it does not wait", lambda: bed.printable("waiter") == "Provisioning")
    bed.annotate("datavolumes", "waiter-root", HOLD, None)
    bed.instance("waiter")
    assert _import(bed, "waiter-root")["phase"] == "Succeeded"
    claim = bed.get("persistentvolumeclaims", "waiter-root")
    assert claim
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]


def test_an_import_fails_with_the_message_it_is_told(bed: KubeVirtBed) -> None:
    body = _from_web("lost") | {"apiVersion": "cdi.kubevirt.io/v1beta1", "kind": "DataVolume"}
    body["metadata"]["annotations"] = {FAIL: "404 Not Found"}
    bed.create("datavolumes", body)

    def told() -> bool:
        conditions = _import(bed, "lost").get("conditions") or ()
        return any(each["message"] == "404 Not Found" for each in conditions)

    bed.wait("nothing is said", told)


def test_what_a_class_can_do_is_told(bed: KubeVirtBed) -> None:
    profile = bed.get("storageprofiles", "fast-ssd", "")
    assert profile
    assert profile["status"]["claimPropertySets"][0]["volumeMode"] == "Block"
