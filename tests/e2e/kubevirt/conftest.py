"""Stages for Machines of the Viti Stack, and for VirtualMachines, on a real KubeVirt."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.kubevirt.machines import MachineStage, staged
from kubevirt_bed import KubeVirtBed, fresh_namespace
from operators import install


@pytest.fixture(scope="session")
def viti_cluster(kubevirt_cluster: KubeVirtBed) -> KubeVirtBed:
    """A KubeVirt cluster that knows our kinds and gives the operator its rights."""
    install(kubevirt_cluster.plane)
    return kubevirt_cluster


@pytest.fixture
def stage(
    viti_cluster: KubeVirtBed, kubevirt: KubeVirtBed, tmp_path: Path
) -> Iterator[MachineStage]:
    """A namespace of the test's own, with an operator that looks after its Machines."""
    del viti_cluster
    with staged(kubevirt, tmp_path) as there:
        yield there


@pytest.fixture
def importing(importing_cluster: KubeVirtBed) -> Iterator[KubeVirtBed]:
    """A namespace of the test's own in it."""
    with fresh_namespace(importing_cluster) as bed:
        yield bed
