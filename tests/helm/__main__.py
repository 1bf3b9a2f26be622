"""Make sure that helm is there, and print where; a build takes longer than a test may."""

import sys

from helm import built
from novacron.localcluster.errors import LocalClusterError
from novacron.workplace.progress import Lines

if __name__ == "__main__":
    try:
        print(built(Lines(lambda line: print(line, file=sys.stderr, flush=True))))
    except LocalClusterError as error:
        sys.exit(f"error: {error}")
