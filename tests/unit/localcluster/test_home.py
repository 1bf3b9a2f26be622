"""Where things lie: one directory when asked for, the user's XDG directories otherwise."""

import stat
from pathlib import Path

import pytest

from novacron.localcluster.errors import LocalClusterError
from novacron.localcluster.files import private_directory, write_private
from novacron.localcluster.home import Home
from novacron.localcluster.purge import doomed, purge


def test_by_default_the_xdg_directories_are_used():
    """State is kept, the cache can be made again: two places with two meanings."""
    home = Home.default({"HOME": "/home/ada"})
    assert home.state == Path("/home/ada/.local/state/novacron")
    assert home.cache == Path("/home/ada/.cache/novacron")


def test_xdg_variables_are_followed_and_relative_ones_ignored():
    """The standard asks for both."""
    home = Home.default({"HOME": "/home/ada", "XDG_STATE_HOME": "/s", "XDG_CACHE_HOME": "c"})
    assert home.state == Path("/s/novacron")
    assert home.cache == Path("/home/ada/.cache/novacron")


def test_one_variable_moves_everything():
    """State lives in one directory when the user names one."""
    home = Home.default({"HOME": "/home/ada", "NOVACRON_HOME": "/n"})
    assert (home.state, home.cache) == (Path("/n"), Path("/n/cache"))


def test_the_cache_can_be_shared_by_many_homes():
    """Tests have a home each and must not build Kubernetes each."""
    home = Home.default({"NOVACRON_HOME": "/n", "NOVACRON_CACHE": "/c"})
    assert (home.state, home.cache) == (Path("/n"), Path("/c"))


def test_files_are_private_and_replaced_whole(tmp_path):
    """A reader sees the old content or the new one, and no other user sees either."""
    path = write_private(tmp_path / "a" / "secret", "one")
    write_private(path, "two")
    assert path.read_text() == "two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [each.name for each in path.parent.iterdir()] == ["secret"]


def test_a_place_that_cannot_be_used_is_one_sentence(tmp_path):
    """The message must name the way out."""
    (tmp_path / "file").write_text("")
    with pytest.raises(LocalClusterError, match="point NOVACRON_HOME at"):
        private_directory(tmp_path / "file" / "state")


def _populated(tmp_path: Path) -> Home:
    home = Home(tmp_path / "state", tmp_path / "cache")
    for place in (home.cluster / "etcd", home.cache / "kubernetes-v1", home.cache / ".building-x"):
        place.mkdir(parents=True)
    home.lock.write_text("")
    return home


def test_a_purge_removes_the_state_and_keeps_the_shared_cache(tmp_path):
    """The cache serves every checkout and test run and takes minutes to build."""
    home = _populated(tmp_path)
    assert purge(home, cache=False) == [home.cluster]
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
