"""Packages are taken from where they are, and fetched only when they are nowhere."""

import os
import subprocess
from pathlib import Path

import pytest

from novacron.guests.errors import ImageFailed
from novacron.guests.tiny.debs import Debs, unpack
from novacron.workplace.progress import Silent

# Copies packages from the directory "archive"; without its lists it knows none.
APT = """#!/bin/sh
here={here}
for word; do
    case $word in
    -oDir::State::lists=*) lists=${{word#*=}} ;;
    update) touch "$lists/read"; exit ;;
    esac
done
[ -e "${{lists:-$here/lists}}/read" ] || {{ echo 'E: Unable to locate package' >&2; exit 100; }}
for word; do
    case $word in
    *:amd64) cp "$here/archive/${{word%:amd64}}"_*.deb . || exit 100 ;;
    esac
done
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A place with an archive and an apt-get of its own."""
    for name in ("bin", "archive", "lists", "kept", "debs"):
        (tmp_path / name).mkdir()
    (tmp_path / "bin/apt-get").write_text(APT.format(here=tmp_path))
    (tmp_path / "bin/apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return tmp_path


def _package(directory: Path, name: str, depends: str = "", version: str = "1") -> Path:
    tree = directory / f".{name}-{version}"
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        f"Package: {name}\nVersion: {version}\nArchitecture: amd64\nMaintainer: a <a@b>\n"
        f"Description: a test\n" + (f"Depends: {depends}\n" if depends else "")
    )
    (tree / name).write_text(version)
    target = directory / f"{name}_{version}_amd64.deb"
    command = ["dpkg-deb", "--build", "--root-owner-group", "-Znone", tree, target]
    subprocess.run(command, check=True, capture_output=True)
    return target


def _debs(place: Path) -> Debs:
    return Debs(place / "debs", place / "scratch", Silent(), place / "kept")


def _names(packages: list[Path]) -> list[str]:
    return [path.name.split("_")[0] for path in packages]


def test_libraries_come_along_and_whole_systems_do_not(place):
    """A program needs its libraries; its services and scripts are of no use in a guest."""
    _package(place / "debs", "agent", "libone (>= 2.0) | libother, init-system-helpers, libtwo:any")
    _package(place / "debs", "libone", "libtwo")
    _package(place / "debs", "libtwo")
    assert _names(_debs(place).closure(["agent"])) == ["agent", "libone", "libtwo"]


def test_what_apt_keeps_is_used(place):
    """Whoever installed it has it already."""
    _package(place / "kept", "agent")
    assert _debs(place).closure(["agent"]) == [place / "kept/agent_1_amd64.deb"]


def test_the_newest_of_several_is_taken(place):
    """A directory that is used again and again holds old ones too."""
    for version, time in (("10", 2000), ("9", 1000)):
        os.utime(_package(place / "debs", "agent", version=version), (time, time))
    assert _debs(place).closure(["agent"]) == [place / "debs/agent_10_amd64.deb"]


def test_what_is_missing_is_fetched_and_kept(place):
    """So the same directory serves a machine without a network."""
    _package(place / "archive", "agent", "libone")
    _package(place / "archive", "libone")
    (place / "lists/read").touch()
    assert _names(_debs(place).closure(["agent"])) == ["agent", "libone"]
    assert (place / "debs/libone_1_amd64.deb").exists()
    assert not (place / "scratch").exists()


def test_old_lists_are_read_anew_and_the_systems_are_left_alone(place):
    """An ordinary user may not change them, and root should not have to."""
    _package(place / "archive", "agent")
    assert _names(_debs(place).closure(["agent"])) == ["agent"]
    assert list((place / "lists").iterdir()) == []


def test_what_cannot_be_fetched_is_one_sentence_with_a_way_out(place):
    """Most often the network is missing."""
    with pytest.raises(ImageFailed, match=r"could not fetch packages .*--debs DIR") as failure:
        _debs(place).closure(["agent"])
    assert "\n" not in str(failure.value)


def test_packages_are_unpacked_into_one_tree(place):
    """Nothing of them is installed, and none of their scripts is run."""
    unpack([_package(place / "debs", name) for name in ("one", "two")], place / "tree")
    assert sorted(path.name for path in (place / "tree").iterdir()) == ["one", "two"]
