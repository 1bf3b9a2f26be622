"""Make sure that versitygw is there, and print where; a build takes longer than a test may."""

import sys

from novacron.localcluster.errors import LocalClusterError
from novacron.workplace.progress import Lines
from versitygw import built

if __name__ == "__main__":
    try:
        print(built(Lines(lambda line: print(line, file=sys.stderr, flush=True))))
    except LocalClusterError as error:
        sys.exit(f"error: {error}")
