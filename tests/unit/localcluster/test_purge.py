"""A purge removes what we made, and nothing else."""

from pathlib import Path

from novacron.localcluster.purge import doomed, purge
from novacron.workplace.home import Home


def _populated(tmp_path: Path) -> Home:
    home = Home(tmp_path / "state", tmp_path / "cache")
    made = (
        home.cluster / "etcd",
        home.hypervisor,
        home.state / "images",
        home.cache / ".building-x",
    )
    for place in (*made, home.cache / "kubernetes-v1"):
        place.mkdir(parents=True)
    (home.state / "provider").write_text("libvirt")
    (home.cache / "guest-tiny-1.qcow2").touch()
    home.lock.write_text("")
    return home


def test_a_purge_removes_the_state_and_keeps_the_shared_cache(tmp_path):
    """The cache serves every checkout and test run and takes minutes to build."""
    home = _populated(tmp_path)
    removed = purge(home, cache=False)
    assert {path.name for path in removed} == {"cluster", "hypervisor", "images", "provider"}
    assert not home.state.exists()
    assert (home.cache / "kubernetes-v1").exists()


def test_a_purge_of_the_cache_has_to_be_asked_for(tmp_path):
    """Then nothing of ours is left."""
    home = _populated(tmp_path)
    purge(home, cache=True)
    assert not home.state.exists()
    assert not home.cache.exists()


def test_what_is_not_ours_stays(tmp_path):
    """A NOVACRON_HOME that names the user's home directory must cost them nothing."""
    home = _populated(tmp_path)
    (home.state / "thesis.tex").write_text("years of work")
    (home.cache / "else").mkdir()
    purge(home, cache=True)
    assert [path.name for path in home.state.iterdir()] == ["thesis.tex"]
    assert [path.name for path in home.cache.iterdir()] == ["else"]


def test_a_link_is_removed_and_what_it_leads_to_is_not(tmp_path):
    """Somebody may have moved the data to a bigger disk."""
    home = Home(tmp_path / "state", tmp_path / "cache")
    target = tmp_path / "bigger-disk"
    target.mkdir()
    home.state.mkdir()
    home.cluster.symlink_to(target)
    assert doomed(home, cache=True) == [home.cluster]
    purge(home, cache=True)
    assert target.exists()
    assert not home.cluster.is_symlink()
