"""The image under test."""

from pathlib import Path

import pytest

from novacron.guests.tiny.image import tiny_image
from novacron.workplace.home import Home
from novacron.workplace.progress import Silent


@pytest.fixture(scope="session")
def tiny() -> Path:
    """The image, from the ordinary cache; made at first use."""
    return tiny_image(Home.default().cache, Silent())
