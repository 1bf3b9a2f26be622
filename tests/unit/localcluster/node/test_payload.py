"""Which files a volume holds, and that a reader never sees half of a change."""

import base64
import os
import stat
import threading
from contextlib import suppress

import pytest

from novacron.localcluster.node.environment import CONFIG_MAPS, Unmet
from novacron.localcluster.node.payload import (
    File,
    Payload,
    TokenWish,
    references,
    token_wishes,
)
from novacron.localcluster.node.published import publish
from novacron.runtime.resource import SECRETS

OBJECTS = {
    (SECRETS, "door"): {"data": {"key": base64.b64encode(b"open").decode()}},
    (CONFIG_MAPS, "conf"): {
        "data": {"a": "1", "b": "2"},
        "binaryData": {"c": base64.b64encode(b"\xff").decode()},
    },
}
POD = {
    "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"app": "web"}},
    "spec": {"containers": []},
}


def files(**volume):
    """Return the files of a volume."""
    maker = Payload(POD, lambda *name: OBJECTS.get(name), lambda wish: f"token {wish.audience}", {})
    return maker.of(volume)


def test_every_key_is_a_file():
    """With the volume's mode, or the ordinary one."""
    assert files(secret={"secretName": "door", "defaultMode": 0o400}) == {
        "key": File(b"open", 0o400)
    }
    assert files(configMap={"name": "conf"})["c"] == File(b"\xff", 0o644)


def test_items_choose_rename_and_set_modes():
    """Nothing else is there then."""
    items = [{"key": "a", "path": "deep/down", "mode": 0o600}]
    assert files(configMap={"name": "conf", "items": items}) == {"deep/down": File(b"1", 0o600)}


def test_what_is_missing_is_named_unless_it_is_optional():
    """A pod waits for a Secret that comes later."""
    with pytest.raises(Unmet, match="Secret none does not exist"):
        files(secret={"secretName": "none"})
    with pytest.raises(Unmet, match="ConfigMap conf has no key z"):
        files(configMap={"name": "conf", "items": [{"key": "z", "path": "z"}]})
    assert files(secret={"secretName": "none", "optional": True}) == {}


def test_a_projected_volume_is_the_sum_of_its_sources():
    """This is how every pod gets its token."""
    found = files(
        projected={
            "defaultMode": 0o440,
            "sources": [
                {"serviceAccountToken": {"path": "token", "audience": "vault"}},
                {"configMap": {"name": "conf", "items": [{"key": "a", "path": "ca.crt"}]}},
                {
                    "downwardAPI": {
                        "items": [
                            {"path": "app", "fieldRef": {"fieldPath": "metadata.labels['app']"}}
                        ]
                    }
                },
                {"secret": {"name": "door"}},
            ],
        }
    )
    assert {path: file.content for path, file in found.items()} == {
        "token": b"token vault",
        "ca.crt": b"1",
        "app": b"web",
        "key": b"open",
    }
    assert {file.mode for file in found.values()} == {0o440}


def test_everything_a_pod_refers_to_is_known_beforehand():
    """The API server lets a node read nothing else."""
    pod = {
        "spec": {
            "volumes": [
                {"name": "a", "secret": {"secretName": "s1"}},
                {"name": "b", "configMap": {"name": "m1"}},
                {"name": "d", "emptyDir": {}},
                {
                    "name": "c",
                    "projected": {
                        "sources": [
                            {"secret": {"name": "s2"}},
                            {"serviceAccountToken": {"path": "t", "expirationSeconds": 900}},
                        ]
                    },
                },
            ],
            "initContainers": [{"envFrom": [{"secretRef": {"name": "s3"}}]}],
            "containers": [
                {
                    "envFrom": [{"configMapRef": {"name": "m2"}}],
                    "env": [
                        {"name": "X", "valueFrom": {"secretKeyRef": {"name": "s4", "key": "k"}}},
                        {"name": "Y", "value": "1"},
                    ],
                }
            ],
        }
    }
    secrets = {(SECRETS, name) for name in ("s1", "s2", "s3", "s4")}
    assert references(pod) == secrets | {(CONFIG_MAPS, "m1"), (CONFIG_MAPS, "m2")}
    assert token_wishes(pod) == {TokenWish("", 900)}


def test_files_are_brought_to_what_is_wanted(tmp_path):
    """Changed, added and removed; and what is so already is not touched."""
    assert publish(tmp_path, {"a": File(b"1", 0o644), "gone": File(b"x", 0o644)})
    assert publish(tmp_path, {"a": File(b"2", 0o600), "deep/b": File(b"3", 0o644)})
    assert (tmp_path / "a").read_bytes() == b"2"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert (tmp_path / "deep/b").read_bytes() == b"3"
    assert not (tmp_path / "gone").is_symlink()
    assert not publish(tmp_path, {"a": File(b"2", 0o600), "deep/b": File(b"3", 0o644)})
    # One directory with files, one link to it, and a link for each entry.
    assert len(list(tmp_path.iterdir())) == 4


def test_files_change_all_at_once(tmp_path):
    """A certificate and a key that do not match would be worse than old ones."""
    publish(tmp_path, {name: File(b"0", 0o644) for name in "ab"})
    seen: set[tuple[bytes, bytes]] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            with suppress(FileNotFoundError):
                place = (tmp_path / "..data").resolve(strict=True)
                seen.add(((place / "a").read_bytes(), (place / "b").read_bytes()))

    reader = threading.Thread(target=read)
    reader.start()
    for number in range(300):
        publish(tmp_path, {name: File(b"%d" % number, 0o644) for name in "ab"})
    done.set()
    reader.join()
    assert len(seen) > 1
    assert all(first == second for first, second in seen)


def test_what_a_crash_left_is_replaced(tmp_path):
    """Half-written files must not be taken for whole ones."""
    publish(tmp_path, {"a": File(b"1", 0o644)})
    name = (tmp_path / "..data").readlink()
    (tmp_path / "..data").unlink()
    (tmp_path / name / "a").write_bytes(b"half")
    (tmp_path / "..new").symlink_to("nowhere")
    assert publish(tmp_path, {"a": File(b"1", 0o644)})
    assert (tmp_path / "a").read_bytes() == b"1"


def test_a_group_may_read_what_is_given_to_it(tmp_path):
    """`fsGroup`: the file's own mode is not enough for a user who is not root."""
    publish(tmp_path, {"a": File(b"1", 0o400)}, os.getgid())
    found = (tmp_path / "a").stat()
    assert stat.S_IMODE(found.st_mode) == 0o440
    assert found.st_gid == os.getgid()
