"""What a guest says, made fit for where it is shown."""

from hypothesis import given
from hypothesis import strategies as st

from novacron.cli.conversation import recent
from novacron.cli.terminal import Plain

ORDERS = [
    b"\x1b[6n",
    b"\x1b[0;31m",
    b"\x1b[?25l",
    b"\x1b]0;title\x07",
    b"\x1b]8;;x\x1b\\",
    b"\x1bP+q544e\x1b\\",
    b"\x1bc",
    b"\x1b(B",
    b"\x1b7",
]


def test_orders_to_a_terminal_are_taken_out():
    """A terminal would answer some of them as if the user had typed."""
    for order in ORDERS:
        assert Plain()(b"a" + order + b"b") == b"ab", order


@given(st.lists(st.sampled_from([*ORDERS, b"words", b"\r\n", b"\xc3\xa4"])), st.data())
def test_it_does_not_matter_into_which_pieces_it_is_cut(parts, data):
    """A console is read as it comes."""
    whole = b"".join(parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)))))
    clean, shown = Plain(), b""
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        shown += clean(whole[start:end])
    words = b"".join(part for part in parts if part not in ORDERS)
    assert shown == words.replace(b"\r\n", b"\n")


def test_an_order_that_never_ends_does_not_hold_back_all_that_follows():
    """A guest may say anything."""
    clean = Plain()
    shown = clean(b"\x1b]")
    for _ in range(100):
        shown += clean(b"words ")
    assert shown.count(b"words ") > 40


def test_of_what_was_kept_the_last_lines_are_shown():
    """As many as the terminal has, and what comes twice only once."""
    said = b"\r\n".join(b"line %d" % number for number in range(100))
    assert recent(said, b"", 2) == b"line 98\r\nline 99"
    assert recent(said, b"99\r\nline 100", 1) == b"line 99\r\nline 100"
    assert recent(said, b"other", 1) == b"line 99other"
    assert recent(b"", b"first", 5) == b"first"
    assert recent(b"prompt# \x1b[6n", b"", 5) == b"prompt# "
