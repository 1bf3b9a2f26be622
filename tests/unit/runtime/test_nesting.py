"""What is nested deeper than anybody reads keeps nobody from reading all else."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from novacron.runtime.nesting import LEVELS, loads

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=9,
)


def nested(levels: int, within: bytes = b"1") -> bytes:
    """Return lists and objects within each other."""
    return b'{"}":[' * (levels // 2) + within + b"]}" * (levels // 2)


@pytest.mark.parametrize("levels", [2, 250, 600, 1024, 1500, 9000])
def test_all_else_is_read(levels: int) -> None:
    """Before it and after it, with brackets in texts too."""
    before, after = b'{"a":"]\\"}",', b',"z":[{"\\\\":"{"}]}'
    found = loads(before + b'"deep":' + nested(levels, b'"[\\"{"') + after)
    assert (found["a"], found["z"]) == (']"}', [{"\\": "{"}])
    depth, inner = 0, found["deep"]
    while isinstance(inner, dict | list):
        depth += 1
        inner = inner["}"] if isinstance(inner, dict) else inner[0]
    assert (inner, depth) == (('["{', levels) if levels <= 1022 else (None, LEVELS - 1))


def test_what_was_left_out_is_never_written_back() -> None:
    """It would be lost."""
    with pytest.raises(TypeError):
        orjson.dumps(loads(nested(2000)))


@given(PLAIN, PLAIN)
def test_whatever_is_beside_it_is_read_as_it_is(left: object, right: object) -> None:
    """Any text, any shape."""
    parts = b'{"left":', orjson.dumps(left), b',"deep":', nested(1200), b',"right":'
    found = loads(b"".join((*parts, orjson.dumps(right), b"}")))
    assert (found["left"], found["right"]) == (left, right)


BROKEN_OFF = b'{"a":"' + b'{\\"b\\":1}' * 20_000  # as kubectl keeps an object within a text


@pytest.mark.parametrize("text", [b"", b"{", b'{"a":', b"]", b'"', b"[" * 3000, b'{"a":"\\'])
def test_what_is_no_json_is_none_of_it(text: bytes) -> None:
    """Whoever asked hears of that as ever."""
    with pytest.raises(orjson.JSONDecodeError):
        loads(text)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("end", [b"", b"\\"])
def test_a_text_that_is_broken_off_is_read_once(end: bytes) -> None:
    """And not from each of its quotes on, for minutes in which nothing else is done."""
    with pytest.raises(orjson.JSONDecodeError):
        loads(BROKEN_OFF + end)
