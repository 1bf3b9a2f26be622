"""Plain manifests for those who install without helm: ``make chart`` writes them.

The chart with its default values, except that the kinds are not in it: they are generated, and
lie in charts/novacron/crds.
"""

import re
import tempfile
from pathlib import Path

from helm import REPOSITORY, Helm, built

__all__ = ["PLAIN", "rendered"]

PLAIN = REPOSITORY / "deploy/novacron.yaml"
HEAD = """\
# Rendered from charts/novacron by `make chart`.
#   kubectl apply --server-side -f charts/novacron/crds -f deploy/novacron.yaml
apiVersion: v1
kind: Namespace
metadata:
  name: novacron-system
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""
# Nobody but helm may say that helm looks after an object.
HELMS = re.compile(r"^ *(app\.kubernetes\.io/managed-by|helm\.sh/chart): .*\n", re.MULTILINE)


def rendered(helm: Helm) -> str:
    """Return the manifests."""
    return HEAD + HELMS.sub("", helm.template("--no-hooks"))


def main() -> None:
    """Write them."""
    with tempfile.TemporaryDirectory() as home:
        PLAIN.write_text(rendered(Helm(built(), Path(home))))


if __name__ == "__main__":
    main()
