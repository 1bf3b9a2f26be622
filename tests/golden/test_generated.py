"""Generated files are committed, so that reviews show them, and compared with fresh ones here."""

from pathlib import Path

from novacron.app.generate import generated, stale

ROOT = Path(__file__).parents[2]


def test_generated_files_are_current() -> None:
    """A change of a type that leaves its definition behind must not pass; run make generate."""
    assert stale(ROOT, generated()) == []
