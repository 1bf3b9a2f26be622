"""helm, and what the chart renders to."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from helm import Helm, built

Object = dict[str, Any]
Render = Callable[..., list[Object]]


@pytest.fixture(scope="session")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Helm:
    """helm, with no cluster."""
    return Helm(built(), tmp_path_factory.mktemp("helm"))


@pytest.fixture(scope="session")
def render(helm: Helm) -> Render:
    """A function that renders the chart with values as ``--set`` or ``--set-json`` take them."""

    def rendered(*values: str, hooks: bool = True, flag: str = "--set") -> list[Object]:
        flags = [word for value in values for word in (flag, value)]
        text = helm.template(*flags, *([] if hooks else ["--no-hooks"]))
        return [each for each in yaml.safe_load_all(text) if each]

    return rendered
