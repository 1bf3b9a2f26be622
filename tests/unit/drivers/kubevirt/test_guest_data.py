"""What a guest is told, of several that tell it something."""

from email import message_from_string

from novacron.drivers.kubevirt.guest_data import merged


def test_one_text_stays_as_it_is():
    assert merged(["#cloud-config\nusers: []\n"]) == "#cloud-config\nusers: []\n"


def test_two_texts_become_the_parts_of_one_in_their_order_and_with_their_kinds():
    whole = message_from_string(merged(["#cloud-config\na: 1\n", "#!/bin/sh\necho hi\n"]))
    parts = whole.get_payload()
    assert [each.get_content_type() for each in parts] == [
        "text/cloud-config",
        "text/x-shellscript",
    ]
    assert parts[1].get_payload(decode=True) == b"#!/bin/sh\necho hi\n"


def test_the_same_parts_make_the_same_text():
    """Otherwise the Secret would be written again and again."""
    assert merged(["a", "b"]) == merged(["a", "b"])
