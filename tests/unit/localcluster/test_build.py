"""Builds appear whole or not at all, tell how far they are, and explain their failures.

A small script stands in for Go where its slowness or a rare failure is the point; whatever Go
itself decides (checksums, caches) is asked of the real one.
"""

import os
import stat
from pathlib import Path

import pytest

from novacron.localcluster.binaries import KUBERNETES, cached, locate
from novacron.localcluster.errors import BuildFailed
from novacron.localcluster.golang import find_go, go_version, wanted_version
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent

STAND_IN = """#!/bin/sh
case "$1" in
env) echo go1.99.0; exit 0 ;;
mod) echo 'all modules verified'; exit 0 ;;
list) echo 'go: downloading k8s.io/api v0.34.4' >&2; printf 'a\\nb\\nc\\nd\\n'; exit 0 ;;
build)
    {fault}
    while [ "$1" != -o ]; do shift; done
    for name in {programs}; do
        printf '#!/bin/sh\\necho Kubernetes v{version}\\n' >"$2/$name"
        chmod +x "$2/$name"
    done
    printf 'a\\nb\\nc\\n' >&2 ;;
esac
"""


class Heard:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.counts: list[tuple[str, int, int]] = []

    def say(self, text: str) -> None:
        """Take no notice."""

    def count(self, what: str, done: int, total: int) -> None:
        """Remember it."""
        self.counts.append((what, done, total))


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Put a script first on the PATH as go; it may be told to fail in a certain way."""
    monkeypatch.delenv("NOVACRON_KUBERNETES_BIN", raising=False)
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")

    def write(fault: str = "") -> None:
        script = STAND_IN.format(
            fault=fault, programs=" ".join(KUBERNETES.programs), version=KUBERNETES.version
        )
        (place / "go").write_text(script)
        (place / "go").chmod(0o755)

    return write


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_build_is_cached_and_not_done_twice(tmp_path, stand_in):
    """It takes minutes; a second `up` takes seconds."""
    stand_in()
    cache = tmp_path / "cache"
    directory = locate(cache, None, Silent())
    assert directory == cached(cache)
    assert _names(directory) == sorted(KUBERNETES.programs)
    stand_in(fault="exit 1")
    assert locate(cache, None, Silent()) == directory


def test_progress_counts_downloads_and_packages(tmp_path, stand_in):
    """A bar that moves is the difference between waiting and giving up."""
    stand_in()
    heard = Heard()
    locate(tmp_path / "cache", None, heard)
    packages = [count for count in heard.counts if count[0] == "packages"]
    assert packages == [("packages", n, 4) for n in (1, 2, 3, 4)]
    assert ("modules", 1, heard.counts[0][2]) == heard.counts[0]


def test_a_cache_that_lost_a_program_is_filled_again(tmp_path, stand_in):
    """Cleaners of temporary files remove single files."""
    stand_in()
    directory = locate(tmp_path / "cache", None, Silent())
    (directory / "etcd").unlink()
    assert _names(locate(tmp_path / "cache", None, Silent())) == sorted(KUBERNETES.programs)
    assert _names(tmp_path / "cache") == ["build.lock", directory.name]


def test_what_a_killed_build_left_is_swept(tmp_path, stand_in):
    """A gigabyte of half a build must not stay for ever."""
    stand_in()
    left = tmp_path / "cache" / ".building-abc"
    left.mkdir(parents=True)
    directory = locate(tmp_path / "cache", None, Silent())
    assert _names(tmp_path / "cache") == ["build.lock", directory.name]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("write /x: no space left on device", "the disk is full"),
        ("Get https://proxy: dial tcp: lookup proxy: no such host", "could not download"),
        ("could not import fmt (open /x/go-build/ab: no such file)", "go clean -cache"),
        ("zip: not a valid zip file", "go clean -modcache"),
        ("something new", "Go could not build Kubernetes: something new"),
    ],
)
def test_a_failed_build_is_one_sentence_and_leaves_nothing(tmp_path, stand_in, said, told):
    """The user needs the remedy; the next try needs an empty place."""
    stand_in(fault=f"echo '{said}' >&2; exit 1")
    with pytest.raises(BuildFailed) as failure:
        locate(tmp_path / "cache", None, Silent())
    message = str(failure.value).replace(str(tmp_path / "bin" / "go"), "go")
    assert told in message
    assert "\n" not in message
    assert _names(tmp_path / "cache") == ["build.lock"]


@pytest.fixture
def real_go(tmp_path, monkeypatch):
    """The Go that `up` would use, with caches of the test's own."""
    monkeypatch.delenv("NOVACRON_KUBERNETES_BIN", raising=False)
    go = find_go(Home.default().cache, Silent())
    monkeypatch.setenv("PATH", f"{go.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("GOMODCACHE", str(tmp_path / "modules"))
    monkeypatch.setenv("GOCACHE", str(tmp_path / "builds"))
    monkeypatch.setenv("GOPROXY", "off")
    monkeypatch.setenv("GOFLAGS", "-modcacherw")
    return go


def test_sources_that_are_not_the_pinned_ones_are_refused(tmp_path, real_go, monkeypatch):
    """A damaged or poisoned module cache must not get into the programs we run."""
    download = tmp_path / "modules/cache/download/k8s.io/kubernetes/@v"
    download.mkdir(parents=True)
    (download / "v1.34.4.mod").write_text("module k8s.io/kubernetes\n\ngo 1.24.0\n")
    with pytest.raises(BuildFailed, match=r"module cache is damaged.*clean -modcache"):
        locate(tmp_path / "cache", None, Silent())
    assert _names(tmp_path / "cache") == ["build.lock"]


def test_a_build_cache_that_cannot_be_used_is_one_sentence(tmp_path, real_go, monkeypatch):
    """Go's own message names neither the variable nor the way out."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("GOCACHE", str(tmp_path / "file"))
    with pytest.raises(BuildFailed, match="point GOCACHE at a directory of your own"):
        locate(tmp_path / "cache", None, Silent())


def test_the_machines_own_go_is_new_enough_or_not_used(real_go):
    """go.mod says what our sources need."""
    version = go_version(real_go)
    assert version is not None
    assert version >= wanted_version()


def test_something_that_is_no_go_has_no_version(tmp_path):
    """A program of that name may be anything, and then it is passed over."""
    pretender = tmp_path / "go"
    assert go_version(pretender) is None
    pretender.write_text("#!/bin/sh\necho hello\n")
    pretender.chmod(pretender.stat().st_mode | stat.S_IXUSR)
    assert go_version(pretender) is None


def test_every_module_is_pinned_by_a_checksum():
    """Otherwise a proxy could hand us anything."""
    sums = (KUBERNETES.module / "go.sum").read_text()
    assert f"k8s.io/kubernetes v{KUBERNETES.version} h1:" in sums
    assert "go.etcd.io/etcd/server/v3 v3." in sums
