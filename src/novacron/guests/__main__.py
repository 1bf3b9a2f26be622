"""Make a guest image and print where it is.

``python -m novacron.guests tiny`` is what ``make test`` runs first; with ``--install`` it also
installs the system packages that making and starting guests needs.
"""

import argparse
import shutil
import sys
from pathlib import Path

from novacron.guests.packages import missing_for_boot, missing_for_image
from novacron.guests.tiny.image import tiny_image
from novacron.workplace.errors import WorkplaceError
from novacron.workplace.home import Home
from novacron.workplace.packages import install
from novacron.workplace.progress import Lines


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m novacron.guests", description=__doc__)
    parser.add_argument("guest", choices=["tiny"])
    parser.add_argument("--output", type=Path, metavar="FILE", help="copy the image there")
    parser.add_argument(
        "--debs",
        type=Path,
        metavar="DIR",
        help="take packages from there, and put those that must be fetched there",
    )
    parser.add_argument(
        "--install", action="store_true", help="install the system packages that are missing"
    )
    return parser.parse_args()


def _make(arguments: argparse.Namespace) -> Path:
    missing = missing_for_image() + missing_for_boot()
    if arguments.install and missing:
        install(missing, _tell)
    image = tiny_image(Home.default().cache, Lines(_tell), arguments.debs)
    if arguments.output:
        return Path(shutil.copyfile(image, arguments.output))
    return image


def _main() -> None:
    try:
        print(_make(_arguments()))  # noqa: T201
    except (WorkplaceError, OSError) as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")


if __name__ == "__main__":
    _main()
