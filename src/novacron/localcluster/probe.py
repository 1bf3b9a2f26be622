"""Asking a program on loopback whether it can serve."""

import http.client
import ssl

from novacron.localcluster.ports import LOOPBACK

__all__ = ["answers"]

PATIENCE_SECONDS = 5


def answers(port: int | None, path: str, context: ssl.SSLContext) -> bool:
    """Say whether the program answers that all is well; without a port nothing does."""
    if port is None:
        return False
    connection = http.client.HTTPSConnection(
        LOOPBACK, port, timeout=PATIENCE_SECONDS, context=context
    )
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
