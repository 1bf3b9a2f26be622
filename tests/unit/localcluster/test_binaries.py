"""Ready-made programs are taken when they are what they should be."""

from pathlib import Path

import pytest

from novacron.localcluster.binaries import KUBERNETES, locate
from novacron.localcluster.errors import BuildFailed
from novacron.workplace.progress import Silent


def _programs(directory: Path, prints: str) -> Path:
    directory.mkdir()
    for name in KUBERNETES.programs:
        (directory / name).write_text(f"#!/bin/sh\necho '{prints}'\n")
        (directory / name).chmod(0o755)
    return directory


def test_ready_made_programs_are_used_where_they_are(tmp_path):
    """Nothing is built and nothing is copied."""
    given = _programs(tmp_path / "bin", "Kubernetes v1.34.4")
    assert locate(tmp_path / "cache", given, Silent()) == given
    assert not (tmp_path / "cache").exists()


def test_the_environment_can_name_them(tmp_path, monkeypatch):
    """CI and packagers set a variable once instead of a flag everywhere."""
    given = _programs(tmp_path / "bin", "Kubernetes v1.31.0")
    monkeypatch.setenv("NOVACRON_KUBERNETES_BIN", str(given))
    assert locate(tmp_path / "cache", None, Silent()) == given


def test_a_missing_program_is_named(tmp_path):
    """Half a set would fail much later and say much less."""
    given = _programs(tmp_path / "bin", "Kubernetes v1.34.4")
    (given / "kubectl").unlink()
    (given / "etcd").unlink()
    with pytest.raises(BuildFailed, match="lacks etcd, kubectl"):
        locate(tmp_path / "cache", given, Silent())


@pytest.mark.parametrize(
    ("prints", "told"),
    [
        ("Kubernetes v1.20.2", "version 1.30 or later is needed"),
        ("hello", "does not tell its Kubernetes version"),
    ],
)
def test_others_are_refused(tmp_path, prints, told):
    """Debian's kubectl is 1.20, and a wrapper script may be anything."""
    given = _programs(tmp_path / "bin", prints)
    with pytest.raises(BuildFailed, match=told):
        locate(tmp_path / "cache", given, Silent())


def test_a_program_for_another_machine_is_one_sentence(tmp_path):
    """Copied from a Mac, it is there and executable and still does not run."""
    given = _programs(tmp_path / "bin", "Kubernetes v1.34.4")
    (given / "kube-apiserver").write_bytes(b"\xcf\xfa\xed\xfe")
    with pytest.raises(BuildFailed, match="kube-apiserver does not run"):
        locate(tmp_path / "cache", given, Silent())
