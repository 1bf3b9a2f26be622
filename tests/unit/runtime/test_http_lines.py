"""The patience and the limits of lines that come without end."""

import asyncio

import pytest

from novacron.runtime.http_lines import LARGEST_LINE, Lines


class Source:
    """What lines come from, and what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def pause(self) -> None:
        self.asked.append("pause")

    def resume(self) -> None:
        self.asked.append("resume")

    def abort(self) -> None:
        self.asked.append("abort")


@pytest.mark.looptime
async def test_silence_ends_the_lines_and_any_word_is_one() -> None:
    """A server that hangs looks like one that has nothing to say, for a while."""
    source, lines = Source(), Lines(300)
    lines.begin(source)
    for _ in range(10):
        await asyncio.sleep(200)
        lines.feed(b"x")
    begun = asyncio.get_running_loop().time()
    with pytest.raises(TimeoutError, match="nothing was heard for 300 s"):
        await anext(lines)
    assert asyncio.get_running_loop().time() - begun == pytest.approx(300, abs=1)
    assert source.asked == ["abort"]


@pytest.mark.looptime
async def test_silence_of_our_own_making_does_not_count() -> None:
    """Who made the server wait cannot complain that it says nothing."""
    source, lines = Source(), Lines(300)
    lines.begin(source)
    lines.feed(b"x" * 300_000 + b"\n")
    await asyncio.sleep(1000)
    assert len(await anext(lines)) == 300_000
    assert source.asked == ["pause", "resume"]
    lines.close()


async def test_a_line_without_end_is_not_kept() -> None:
    """Memory is for objects the server can hold."""
    source, lines = Source(), Lines(300)
    lines.begin(source)
    for _ in range(LARGEST_LINE // 2**20 + 1):
        lines.feed(bytes(2**20))
    with pytest.raises(ConnectionError, match="a line of more than"):
        await anext(lines)
    assert source.asked == ["abort"]
