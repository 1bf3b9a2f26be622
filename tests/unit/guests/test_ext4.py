"""The root of a guest belongs to root, whoever makes it."""

import os
import subprocess

from novacron.guests.tiny.ext4 import ext4

SOMEBODY = 12345


def test_every_file_belongs_to_root(tmp_path):
    """An ordinary user's files are the user's, and a guest knows no such user."""
    tree = tmp_path / "tree"
    (tree / "some dir").mkdir(parents=True)
    (tree / "some dir/file").write_text("text")
    (tree / "link").symlink_to("some dir/file")
    places = ["", "some dir", "some dir/file", "link"]
    if os.geteuid() == 0:
        for name in places:
            os.chown(tree / name, SOMEBODY, SOMEBODY, follow_symlinks=False)
    ext4(tree, 32 * 2**20, "test", tmp_path / "image")
    for name in places:
        command = ["/sbin/debugfs", "-R", f'stat "/{name}"', tmp_path / "image"]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "User:     0   Group:     0" in told, name
