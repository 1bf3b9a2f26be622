"""The names a running operator uses are those of the types it never loads."""

import subprocess
import sys

import pytest

from novacron.app.definitions import kinds
from novacron.app.registry import FAMILIES, HOSTS, chosen
from novacron.runtime.resource import Resource


def test_every_resource_is_named_as_its_type() -> None:
    """Two places say it, so one test compares them."""
    defined = {
        Resource(info.group, info.version, info.plural, info.kind, info.namespaced)
        for versions in kinds(["all"])
        for info in (version.__kind__ for version in versions)
    }
    used = {resource for family in FAMILIES.values() for resource, _ in family.machines}
    assert used | {HOSTS} <= defined


def test_an_unknown_family_is_answered_with_those_there_are() -> None:
    """A typo should not need the documentation."""
    with pytest.raises(ValueError, match="no API family is called nova; there are: novacron, viti"):
        chosen(["nova"])


def test_the_operator_loads_neither_types_nor_the_command_line() -> None:
    """They would cost memory for as long as it runs and are never used."""
    heavy = ("aiohttp", "pydantic", "typer", "rich", "cryptography", "yaml")
    code = f"import sys, novacron.app.main;print([name for name in {heavy} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
