"""Every benchmark in turn, quickest first; ``python -m bench --check`` fails on a missed bar."""

import argparse
import sys

from bench.cli_import import measure_starts
from bench.contenders import CONTENDERS
from bench.kubevirt_scale import measure_machines
from bench.libvirt_speed import measure_fleet, measure_libvirt
from bench.migration_speed import measure_migration
from bench.operator_rate import measure_rate
from bench.operator_scale import measure_scale


def main() -> int:
    """Run all, even after a miss, so that one run tells everything."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail when a bar is missed")
    given = parser.parse_args()
    held = [
        measure_starts(),
        measure_libvirt(),
        measure_migration(),
        measure_fleet(),
        measure_rate(list(CONTENDERS)),
        measure_scale(),
        measure_machines(),
    ]
    return 0 if all(held) or not given.check else 1


if __name__ == "__main__":
    sys.exit(main())
