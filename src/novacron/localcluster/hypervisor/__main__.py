"""Make sure that guests can be run here: the system's packages, and the binding of libvirt.

``python -m novacron.localcluster.hypervisor`` is what ``make test`` runs first.
"""

import sys

from novacron.localcluster.hypervisor import binding
from novacron.localcluster.hypervisor.packages import missing_for_hypervisor
from novacron.workplace.errors import WorkplaceError
from novacron.workplace.packages import install


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201


def _main() -> None:
    try:
        if missing := missing_for_hypervisor():
            install(missing, _tell)
        if not binding.present():
            _tell("compiling the Python binding of libvirt")
            binding.install()
    except WorkplaceError as error:
        sys.exit(f"error: {error}")
    except KeyboardInterrupt:
        sys.exit("interrupted")


if __name__ == "__main__":
    _main()
