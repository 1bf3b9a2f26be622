"""Where things lie: one directory when asked for, the user's XDG directories otherwise."""

import stat
from pathlib import Path

import pytest

from novacron.workplace.errors import WorkplaceError
from novacron.workplace.files import private_directory, write_private
from novacron.workplace.home import Home


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
    with pytest.raises(WorkplaceError, match="point NOVACRON_HOME at"):
        private_directory(tmp_path / "file" / "state")
