"""The image is in the cache whole or not at all, and another recipe is another image."""

import shutil

import pytest

from novacron.guests.builtin import builtin
from novacron.guests.errors import ImageFailed
from novacron.guests.tiny import image as recipe
from novacron.guests.tiny.image import cached, tiny_image
from novacron.workplace.progress import Silent


@pytest.fixture
def broken_apt(tmp_path, monkeypatch):
    """A machine on which nothing can be fetched."""
    (tmp_path / "bin").mkdir()
    for name in ("apt-get", "dpkg-deb"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\necho 'E: broken' >&2; exit 100\n")
        (tmp_path / "bin" / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))


def test_a_cached_image_is_used_as_it_is(tmp_path, broken_apt):
    """A second `up` takes no time, also without a network."""
    cached(tmp_path).write_text("image")
    assert tiny_image(tmp_path, Silent()) == cached(tmp_path)
    assert builtin("tiny", tmp_path, Silent()) == cached(tmp_path)


def test_a_name_that_nobody_knows_has_no_image(tmp_path):
    """The caller knows what to tell the user; it names the object and the field."""
    assert builtin("huge", tmp_path, Silent()) is None


def test_a_failure_leaves_nothing_behind(tmp_path, broken_apt):
    """The next try needs an empty place; what a killed one left goes as well."""
    cache = tmp_path / "cache"
    (cache / ".guest-killed").mkdir(parents=True)
    (tmp_path / "debs").mkdir()
    with pytest.raises(ImageFailed, match="broken"):
        tiny_image(cache, Silent(), tmp_path / "debs")
    assert [path.name for path in cache.iterdir()] == ["guest-tiny.lock"]


def test_another_recipe_is_another_image(tmp_path, monkeypatch):
    """Whoever changes a script must not be given the image of yesterday."""
    before = cached(tmp_path)
    copy = tmp_path / "recipe"
    shutil.copytree(recipe.HERE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(recipe, "HERE", copy)
    assert cached(tmp_path) == before
    script = copy / "files/root/lib/tiny/early"
    script.write_text(script.read_text() + "# changed\n")
    assert cached(tmp_path) != before
