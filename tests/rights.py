"""What the user who runs the tests may do."""

import os

__all__ = ["ROOT"]

ROOT = os.geteuid() == 0
