"""Make sure that KubeVirt's programs are there, and print where they are.

``python -m novacron.localcluster.kubevirt`` is what ``make test`` runs first: a build takes
longer than a test may.
"""

import sys

from novacron.localcluster.kubevirt.binaries import locate
from novacron.workplace.errors import WorkplaceError
from novacron.workplace.home import Home
from novacron.workplace.progress import Lines


def _main() -> None:
    shown = Lines(lambda line: print(line, file=sys.stderr, flush=True))  # noqa: T201
    try:
        print(locate(Home.default().cache, shown))  # noqa: T201
    except WorkplaceError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")


if __name__ == "__main__":
    _main()
