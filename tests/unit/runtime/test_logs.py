"""Log lines in both forms."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from novacron.runtime.controller import RECONCILE, Reconciling
from novacron.runtime.logs import configure_logs
from novacron.runtime.resource import Key


@pytest.fixture
def untouched_root() -> Iterator[None]:
    """Put the root logger back: pytest listens there too."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers.clear()  # or they would be closed
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def stream(untouched_root: None, capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    token = RECONCILE.set(Reconciling("machines", Key("default", "web"), 7))
    yield
    RECONCILE.reset(token)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_a_json_line_carries_what_is_reconciled(
    stream: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Collectors search by object and by reconcile."""
    configure_logs("info", "json")
    logging.getLogger("novacron.x").info("placed on %s", "h1", extra={"fields": {"step": "Placed"}})
    (line,) = map(json.loads, lines(capsys))
    assert line.pop("timestamp").endswith("+00:00")
    assert line == {
        "level": "info",
        "logger": "novacron.x",
        "message": "placed on h1",
        "controller": "machines",
        "object": "default/web",
        "reconcile": 7,
        "step": "Placed",
    }


def test_a_text_line_is_for_people(stream: None, capsys: pytest.CaptureFixture[str]) -> None:
    """The same fields, at the end of the sentence."""
    configure_logs("info", "text")
    logging.getLogger("novacron.x").warning("no host fits")
    (line,) = lines(capsys)
    assert line.endswith("WARNING no host fits controller=machines object=default/web reconcile=7")


@pytest.mark.parametrize("form", ["json", "text"])
def test_an_exception_is_in_the_line(
    stream: None, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    """A failure without its trace cannot be found."""
    configure_logs("info", form)
    try:
        raise RuntimeError("boom")
    except RuntimeError:
        logging.getLogger("novacron.x").exception("failed")
    assert "RuntimeError: boom" in "\n".join(lines(capsys))


def test_any_field_can_be_logged(stream: None, capsys: pytest.CaptureFixture[str]) -> None:
    """A log line must not be lost because of the type of a value in it."""
    configure_logs("info", "json")
    fields = {"key": Key("default", "a"), "file": io.StringIO(), "set": {1}}
    logging.getLogger("novacron.x").info("odd", extra={"fields": fields})
    (line,) = map(json.loads, lines(capsys))
    assert line["set"] == "{1}"
    assert line["key"] == "default/a"


def test_what_is_below_the_level_is_not_written(
    stream: None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Debug lines cost nothing in production."""
    configure_logs("warning", "json")
    logging.getLogger("novacron.x").info("quiet")
    assert lines(capsys) == []
