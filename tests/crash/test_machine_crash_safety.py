"""The same with Machines on a real KubeVirt: killed at each write to the API server."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from crash.machine_scenarios import MACHINE_SCENARIOS
from crash.machine_theatre import InKubeVirt, MachineTheatre
from kubevirt_bed import KubeVirtBed
from operators import install
from snapshot_storage import answering_snapshots, have_snapshot_storage


@pytest.fixture
def theatre(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MachineTheatre]:
    """One scenario; all its Machines are removed in the end."""
    imports = "image" in request.param.template
    bed: KubeVirtBed = request.getfixturevalue(
        "importing_cluster" if imports else "kubevirt_cluster"
    )
    install(bed.plane)
    have_snapshot_storage(bed)
    name = f"crash-machine-{request.param.name.replace(' ', '-')}"
    stage = MachineTheatre(bed.plane, bed.api, tmp_path, request.param, name, InKubeVirt(bed))
    with answering_snapshots(bed):
        yield stage
        stage.clear()


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "theatre", [pytest.param(each, id=each.name) for each in MACHINE_SCENARIOS], indirect=True
)
def test_killed_at_any_write_to_kubevirt_it_ends_as_if_undisturbed(theatre: MachineTheatre) -> None:
    """No machine, claim, Secret or finalizer is leaked, doubled or lost."""
    theatre.play_all()
