"""What makes other programs out of the same versions."""

import shutil
from dataclasses import replace
from pathlib import Path

from novacron.localcluster.kubevirt.binaries import KUBEVIRT


def test_programs_of_our_own_are_part_of_what_a_build_is_known_by(tmp_path: Path) -> None:
    """Otherwise a changed one would never be built."""
    copy = tmp_path / "gomod"
    shutil.copytree(KUBEVIRT.module, copy)
    recipe = replace(KUBEVIRT, module=copy)
    assert recipe.directory(tmp_path) == KUBEVIRT.directory(tmp_path)
    with (copy / "manifests/main.go").open("a") as source:
        source.write("\n// changed\n")
    assert recipe.directory(tmp_path) != KUBEVIRT.directory(tmp_path)
