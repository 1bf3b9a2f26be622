"""What `up` shows of a console is text, whatever the guest wrote."""

import pytest

from novacron.cli.welcome import first_machine, tail


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (b"", []),
        (b"one\r\ntwo\r\n\r\nthree\r\n", ["one", "two", "three"]),
        (b"\x1b[1;32mgreen\x1b[0m\r\nprompt# \x1b[6nnext\r\n", ["green", "prompt# next"]),
        (b"bell\x07 back\x08space\x00\r\n", ["bell backspace"]),
        ("größe\r\n".encode() + b"\xff\xfe\r\n", ["größe", "\ufffd\ufffd"]),
        (b"\r\n".join(b"%d" % number for number in range(9)), ["4", "5", "6", "7", "8"]),
    ],
)
def test_a_console_is_shown_as_plain_text(said, shown):
    """A guest must not be able to move the cursor of whoever starts it."""
    assert tail(said) == shown


def test_the_first_machine_is_the_example_of_the_guide():
    """What `up` makes is what the user reads."""
    assert first_machine()["metadata"]["name"] == "hello"
