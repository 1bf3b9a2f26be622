"""What an answer of the cluster means for a machine, in the core's words."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from novacron.core.errors import Busy, DriverError, Rejected, Unreachable
from novacron.runtime import errors as api

__all__ = ["in_our_words", "went_away"]

SOON = timedelta(seconds=1)
API_ERROR = "KubeVirtApiError"
# KubeVirt's webhooks are down while it is upgraded: its API server says so with these words.
WEBHOOK_DOWN = "failed calling webhook"
QUOTA = "exceeded quota"
# What KubeVirt refuses it may allow when it is set differently.
MUCH_LATER = timedelta(seconds=60)


@contextmanager
def in_our_words(
    machine: str | None = None, refused: Callable[[], None] | None = None
) -> Iterator[None]:
    """Raise the core's errors for those of the API server.

    ``machine`` is the name of one that was there a moment ago, where only that can be missing.
    ``refused`` is called where the cluster does not know us any more.
    """
    try:
        yield
    except api.Unauthorized as error:
        if refused is not None:
            refused()
        raise Unreachable(f"the cluster refuses our credentials: {error.message}") from error
    except api.ApiError as error:
        raise _meant(error, machine) from error


def _meant(error: api.ApiError, machine: str | None) -> DriverError:
    said = error.message
    match error:
        case api.Conflict():
            return Busy(f"somebody else changed it at the same time: {said}", SOON)
        case api.Invalid():
            sentence = f"KubeVirt refuses it: {said}"
            return Rejected(sentence, reason="KubeVirtRefused", again=MUCH_LATER)
        case api.Forbidden():
            return _forbidden(said)
        case api.NotFound():
            return went_away(machine) if machine else _unknown(said)
        case api.Overloaded():
            return DriverError(_overloaded(said), reason=API_ERROR)
    return Unreachable(said)


def _unknown(said: str) -> DriverError:
    return DriverError(f"{said}; is KubeVirt installed in the cluster?", reason=API_ERROR)


def _forbidden(said: str) -> DriverError:
    if QUOTA in said:
        return DriverError(
            f"{said}: raise the ResourceQuota of the namespace, or ask for less",
            reason="InsufficientResources",
        )
    return DriverError(
        f"the operator's role in the cluster does not allow it: {said}", reason=API_ERROR
    )


def went_away(machine: str) -> Busy:
    """Return what is raised where a machine is gone that was there a moment ago."""
    return Busy(f"VirtualMachine {machine} is not there any more: look again", SOON)


def _overloaded(said: str) -> str:
    if WEBHOOK_DOWN not in said:
        return f"the cluster failed: {said}"
    return (
        f"KubeVirt does not answer, perhaps while it is upgraded: {said}; see whether "
        "virt-api runs (kubectl get pods -n kubevirt -l kubevirt.io=virt-api)"
    )
