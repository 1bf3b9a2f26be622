"""What an answer of the cluster means for a machine, in the core's words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from novacron.core.errors import Busy, DriverError, Rejected, Unreachable
from novacron.runtime import errors as api

__all__ = ["in_our_words"]

SOON = timedelta(seconds=1)
# KubeVirt's webhooks are down while it is upgraded: its API server says so with these words.
WEBHOOK_DOWN = "failed calling webhook"


@contextmanager
def in_our_words(refused: Callable[[], None]) -> Iterator[None]:
    """Raise the core's errors for those of the API server.

    ``refused`` is called where it does not know us any more.
    """
    try:
        yield
    except api.Unauthorized as error:
        refused()
        raise Unreachable(f"the cluster refuses our credentials: {error.message}") from error
    except api.Conflict as error:
        raise Busy(f"somebody else changed it at the same time: {error.message}", SOON) from error
    except api.Invalid as error:
        raise Rejected(f"KubeVirt refuses it: {error.message}", reason="KubeVirtRefused") from error
    except api.Forbidden as error:
        raise DriverError(
            f"the operator's role in the cluster does not allow it: {error.message}",
            reason="KubeVirtApiError",
        ) from error
    except api.NotFound as error:
        raise DriverError(
            f"{error.message}; is KubeVirt installed in the cluster?", reason="KubeVirtApiError"
        ) from error
    except api.Overloaded as error:
        raise DriverError(_overloaded(error), reason="KubeVirtApiError") from error
    except api.ApiError as error:
        raise Unreachable(error.message) from error


def _overloaded(error: api.ApiError) -> str:
    if WEBHOOK_DOWN in error.message:
        return f"KubeVirt does not answer, perhaps while it is upgraded: {error.message}"
    return f"the cluster failed: {error.message}"
