"""The generator writes what is missing, removes what is left over, and with --check only tells."""

from pathlib import Path

import pytest

from novacron.app.generate import generated, main
from novacron.app.registry import FAMILIES, Family
from novacron.crd import CustomResource, Model, kind

DEFINITION = Path("charts/novacron/crds/virtualmachines.novacron.io.yaml")


class WidgetSpec(Model):
    """What is wanted of it."""


@kind(group="example.org", version="v1")
class Widget(CustomResource):
    """A kind of another family."""

    spec: WidgetSpec
    """What is wanted of it."""


RESOURCES = ((Widget,),)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with every generated file in place."""
    assert main(["--root", str(tmp_path)]) == 0
    return tmp_path


def test_files_are_written_once_and_then_left_alone(tmp_path, capsys) -> None:
    """A second run has nothing to do and says nothing."""
    assert main(["--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines() == [f"wrote {path}" for path in sorted(generated())]
    assert main(["--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""


def test_current_files_pass_the_check(root) -> None:
    """Nothing to say means exit code 0."""
    assert main(["--root", str(root), "--check"]) == 0


def test_the_check_names_what_is_out_of_date_and_changes_nothing(root, capsys) -> None:
    """One sentence with the files and the remedy."""
    (root / DEFINITION).write_text("old")
    assert main(["--root", str(root), "--check"]) == 1
    said = capsys.readouterr().err
    assert said == f"Out of date: {DEFINITION}. Run `make generate` and commit the result.\n"
    assert (root / DEFINITION).read_text() == "old"


def test_missing_files_are_out_of_date(root, capsys) -> None:
    """A new kind is not forgotten."""
    (root / DEFINITION).unlink()
    assert main(["--root", str(root), "--check"]) == 1
    assert str(DEFINITION) in capsys.readouterr().err


def test_files_of_a_kind_that_is_gone_are_removed(root) -> None:
    """A left-over definition would still be installed with the chart."""
    gone = root / "charts/novacron/crds/gone.novacron.io.yaml"
    gone.write_text((root / DEFINITION).read_text())
    assert main(["--root", str(root), "--check"]) == 1
    assert main(["--root", str(root)]) == 0
    assert not gone.exists()


def test_files_written_by_hand_are_left_alone(root) -> None:
    """Only what says it is generated belongs to the generator."""
    note = root / "docs/reference/note.md"
    note.write_text("by hand")
    assert main(["--root", str(root), "--check"]) == 0
    assert note.exists()


def test_kinds_of_other_families_stay_out_of_what_helm_installs(monkeypatch) -> None:
    """Helm installs all that lies in crds/, whichever families are on."""
    monkeypatch.setitem(FAMILIES, "other", Family("other", __name__, ()))
    files = generated()
    assert DEFINITION in files
    assert Path("deploy/crds/widgets.example.org.yaml") in files
    assert Path("charts/novacron/crds/widgets.example.org.yaml") not in files
    rights = files[Path("charts/novacron/files/rights.yaml")]
    assert "widgets.example.org" in rights
