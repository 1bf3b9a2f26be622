"""What cloud-init finds: one text as it is, several as one message that mail readers can take."""

import base64
import gzip
from email import message_from_bytes
from email.message import Message

import pytest

from novacron.core.cloud_init import Source, Told
from novacron.core.errors import Rejected
from novacron.core.multi_part import MERGE, joined
from novacron.families.viti.cloud_init import told_by

CONFIG = b"#cloud-config\npackages: [vim]\n"
SCRIPT = b"#!/bin/sh\necho hello\n"


def parts_of(message: bytes) -> list[Message]:
    """Return the parts as a reader of mail finds them."""
    return [part for part in message_from_bytes(message).walk() if not part.is_multipart()]


def test_a_machine_without_words_for_cloud_init_has_no_seed() -> None:
    """Then no disk is made for it."""
    assert told_by({}) is None
    assert told_by({"cloudInit": {"type": "configDrive"}}) is None


def test_a_text_and_a_secret_are_both_kept() -> None:
    """The specification's own example gives both, which KubeVirt refuses."""
    ref = {"name": "machine-secrets", "key": "userdata"}
    seed = told_by({"cloudInit": {"userData": CONFIG.decode(), "secretRef": ref}})
    assert seed == Told((CONFIG,), Source("Secret", "machine-secrets", "userdata"))


def test_upstreams_words_say_the_same() -> None:
    """Base64, ConfigMaps, keys that go without saying."""
    seed = told_by(
        {
            "cloudInit": {
                "type": "configDrive",
                "userDataBase64": base64.encodebytes(CONFIG).decode(),
                "userDataConfigMapRef": {"name": "a"},
                "networkDataSecretRef": {"name": "b"},
            }
        }
    )
    assert seed == Told(
        (CONFIG,),
        Source("ConfigMap", "a", "userdata"),
        None,
        Source("Secret", "b", "networkdata"),
        config_drive=True,
    )
    assert told_by({"userData": SCRIPT.decode()}) == Told((SCRIPT,))


def test_public_keys_are_a_text_of_their_own() -> None:
    """So they reach the guest whatever form the user data has."""
    seed = told_by({"userData": SCRIPT.decode(), "sshKeys": ["ssh-ed25519 AAAA"]})
    assert seed is not None
    assert seed.user_data[1] == b'#cloud-config\n{"ssh_authorized_keys": ["ssh-ed25519 AAAA"]}\n'


def test_what_is_not_base64_is_refused() -> None:
    """The schema sees letters only."""
    with pytest.raises(Rejected, match="userDataBase64 is not base64"):
        told_by({"cloudInit": {"userDataBase64": "abc"}})


def test_one_text_stays_as_it_is() -> None:
    """Not every guest reads messages."""
    assert joined((CONFIG,)) == CONFIG
    assert joined(()) == b""


def test_texts_are_joined_and_come_back_as_they_were() -> None:
    """Each by its own type; lists of configurations are to be added to each other."""
    zipped = gzip.compress(CONFIG, mtime=0)
    odd = "#cloud-config\nmotd: grüß\r\n--x\nFrom here".encode()
    parts = parts_of(joined((CONFIG, SCRIPT, zipped, odd)))
    assert [part.get_payload(decode=True) for part in parts] == [CONFIG, SCRIPT, zipped, odd]
    assert [part.get_content_type() for part in parts] == [
        "text/cloud-config",
        "text/x-shellscript",
        "application/gzip",
        "text/cloud-config",
    ]
    assert [part["Merge-Type"] for part in parts] == [MERGE, None, None, MERGE]


def test_a_message_joined_with_a_text_keeps_its_parts() -> None:
    """Whoever brings a message of several parts gets all of them."""
    message = joined((CONFIG, SCRIPT))
    both = parts_of(joined((message, b"#include\nhttp://h/x\n")))
    kinds = ["text/cloud-config", "text/x-shellscript", "text/x-include-url"]
    assert [part.get_content_type() for part in both] == kinds


def test_the_same_texts_make_the_same_bytes() -> None:
    """Or the Secret would be written anew in every round."""
    assert joined((CONFIG, SCRIPT)) == joined((CONFIG, SCRIPT))
    assert joined((CONFIG, SCRIPT)) != joined((SCRIPT, CONFIG))
