"""Everything `up` needs is looked at, and each fault comes with its remedy."""

from novacron.localcluster.doctor import examine
from novacron.workplace.home import Home


def _findings(home):
    return {finding.name: finding for finding in examine(home)}


def test_a_good_machine_has_nothing_wrong(tmp_path, kubernetes_binaries, monkeypatch):
    """The tests run on one."""
    monkeypatch.setenv("NOVACRON_KUBERNETES_BIN", str(kubernetes_binaries))
    findings = _findings(Home(tmp_path / "state", tmp_path / "cache"))
    assert all(finding.fine for finding in findings.values()), findings
    assert {"system", "Python", "memory", "Kubernetes", "disk"} <= findings.keys()


def test_looking_changes_nothing(tmp_path):
    """A check that makes directories is no check."""
    list(examine(Home(tmp_path / "state", tmp_path / "cache")))
    assert list(tmp_path.iterdir()) == []


def test_a_state_directory_that_is_a_file_is_found(tmp_path):
    """The remedy names the variable."""
    (tmp_path / "state").write_text("")
    finding = _findings(Home(tmp_path / "state", tmp_path / "cache"))[
        f"directory {tmp_path / 'state'}"
    ]
    assert not finding.fine
    assert "NOVACRON_HOME" in finding.remedy


def test_wrong_ready_made_programs_are_found(tmp_path, monkeypatch):
    """A variable set long ago points to what is no longer there."""
    monkeypatch.setenv("NOVACRON_KUBERNETES_BIN", str(tmp_path / "gone"))
    finding = _findings(Home(tmp_path / "state", tmp_path / "cache"))["Kubernetes"]
    assert not finding.fine
    assert "NOVACRON_KUBERNETES_BIN" in finding.remedy


def test_before_the_first_build_its_needs_are_looked_at(tmp_path, monkeypatch):
    """It takes minutes, so what would stop it should be known beforehand."""
    monkeypatch.delenv("NOVACRON_KUBERNETES_BIN", raising=False)
    findings = _findings(Home(tmp_path / "state", tmp_path / "cache"))
    assert "builds it once" in findings["Kubernetes"].state
    assert "Go" in findings
