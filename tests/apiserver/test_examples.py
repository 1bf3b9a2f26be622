"""Every example is taken by the API server as it is, strictly checked."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from declared import Object

EXAMPLES = Path(__file__).parents[2] / "examples"
OURS = ("novacron.io", "vitistack.io")
# Smaller than a cluster allows that was not told otherwise, as `novacron up` tells its own.
ONLY_LOCALLY = "01-first-vm.yaml"


def documents() -> Iterator[tuple[str, Object]]:
    """Return every object of ours in the examples, with the file that it is in."""
    for path in sorted(set(EXAMPLES.glob("*.yaml")) - {EXAMPLES / ONLY_LOCALLY}):
        for each in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            if each["apiVersion"].partition("/")[0] in OURS:
                yield f"{path.name} {each['metadata']['name']}", each


FOUND = dict(documents())


@pytest.mark.parametrize("written", FOUND.values(), ids=FOUND)
def test_an_example_is_accepted(check: Callable[..., Object], written: Object) -> None:
    """A field that is misspelled, or of another form, would be refused."""
    assert check(written)["metadata"]["name"] == written["metadata"]["name"]
