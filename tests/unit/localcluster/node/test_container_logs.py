"""A container's output is written in the form of container runtimes, and read back in parts."""

import asyncio
import re

from novacron.localcluster.node.log_reading import Wish, lines_of, shown
from novacron.localcluster.node.logfile import LONGEST_PART, LogFile, old_of


async def read(path, over=lambda: True, **wish):
    """Return the lines that somebody with this wish sees."""
    asked = Wish(**wish)
    lines = [shown(each, timestamps=asked.timestamps) async for each in lines_of(path, asked, over)]
    return b"".join(lines).decode()


async def test_lines_have_a_moment_and_a_stream(tmp_path):
    """Other tools read them too."""
    log = LogFile(tmp_path / "0.log")
    log.write("stdout", b"hel")
    log.write("stderr", b"oops\n")
    log.write("stdout", b"lo\nunfinished")
    log.close()
    first, second, third = (tmp_path / "0.log").read_text().splitlines()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z stderr F oops", first)
    assert second.endswith(" stdout F hello")
    assert third.endswith(" stdout F unfinished")


async def test_a_line_longer_than_a_part_is_read_as_one(tmp_path):
    """Also when it comes in pieces."""
    long = "x" * (LONGEST_PART * 2 + 10)
    log = LogFile(tmp_path / "0.log")
    log.write("stdout", long[:100].encode())
    log.write("stdout", long[100:].encode() + b"\nnext\n")
    log.close()
    assert await read(tmp_path / "0.log") == f"{long}\nnext\n"


async def test_a_full_log_becomes_the_old_one(tmp_path):
    """Both are shown, and there are never more than two."""
    log = LogFile(tmp_path / "0.log", limit=200)
    for number in range(20):
        log.write("stdout", f"line {number:02}\n".encode())
    log.close()
    shown_lines = (await read(tmp_path / "0.log")).splitlines()
    assert shown_lines[-1] == "line 19"
    assert 2 < len(shown_lines) < 20
    assert old_of(tmp_path / "0.log").exists()
    assert len(list(tmp_path.iterdir())) == 2
    assert await read(tmp_path / "0.log", tail=4) == "line 16\nline 17\nline 18\nline 19\n"
    assert await read(tmp_path / "0.log", tail=0) == ""


async def test_lines_since_a_moment(tmp_path):
    """Moments with and without fractions of a second."""
    (tmp_path / "0.log").write_bytes(
        b"2026-11-15T10:00:00.500000000Z stdout F a\n2026-11-15T10:00:01.000000000Z stdout F b\n"
    )
    assert await read(tmp_path / "0.log", since="2026-11-15T10:00:01Z") == "b\n"
    assert await read(tmp_path / "0.log", since="2026-11-15T10:00:00Z") == "a\nb\n"
    stamped = await read(tmp_path / "0.log", tail=1, timestamps=True)
    assert stamped == "2026-11-15T10:00:01.000000000Z b\n"


async def test_following_shows_what_comes_until_the_run_is_over(tmp_path):
    """Across the moment when the file is replaced, and nothing twice."""
    over = False
    log = LogFile(tmp_path / "0.log", limit=300)
    log.write("stdout", b"first\n")
    following = asyncio.create_task(read(tmp_path / "0.log", lambda: over, follow=True))
    for number in range(10):
        await asyncio.sleep(0.05)
        log.write("stdout", f"later {number}\n".encode())
    over = True
    log.write("stdout", b"last\n")
    log.close()
    expected = ["first", *(f"later {number}" for number in range(10)), "last"]
    assert (await following).splitlines() == expected
