"""Steps: how a reconciler is written.

A step owns one condition, opens with "already settled?", and says what came of it. The runner
stops at the first step that is not done. Waiting is not an error, and nothing sleeps here.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Generic, TypeVar

from novacron.core.errors import Busy, DriverError, Rejected, Unsupported

__all__ = ["Blocked", "Done", "Outcome", "Step", "Wait", "run_steps"]

S = TypeVar("S")

# A host's circuit breaker and its inventory wake its machines earlier when it is back.
TROUBLE_AGAIN = timedelta(seconds=5)


@dataclass(frozen=True, slots=True)
class Done:
    """The step's condition is True; ``after`` says when a look is worthwhile all the same."""

    reason: str = "Done"
    message: str = ""
    after: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Wait:
    """The condition is Unknown; look again after a while, or when something changes.

    What is ``brief`` need not be written down: there will be more to say in a moment.
    """

    reason: str
    after: timedelta | None = None
    message: str = ""
    brief: bool = False


@dataclass(frozen=True, slots=True)
class Blocked:
    """The condition is False until somebody changes something.

    Where that may happen outside the cluster, ``after`` says when to look again.
    """

    reason: str
    message: str
    after: timedelta | None = None


Outcome = Done | Wait | Blocked


@dataclass(frozen=True, slots=True)
class Step(Generic[S]):
    """One verb and the condition it owns."""

    condition: str
    run: Callable[[S], Awaitable[Outcome]]


async def run_steps(steps: Sequence[Step[S]], scope: S) -> dict[str, Outcome]:
    """Run the steps in order up to the first that is not done; failures become outcomes."""
    outcomes: dict[str, Outcome] = {}
    for step in steps:
        outcome = await _attempt(step, scope)
        outcomes[step.condition] = outcome
        if not isinstance(outcome, Done):
            break
    return outcomes


async def _attempt(step: Step[S], scope: S) -> Outcome:
    try:
        return await step.run(scope)
    except Rejected as error:
        return Blocked(error.reason, str(error), error.again)
    except Unsupported as error:
        return Blocked(error.reason, str(error))
    except Busy as error:
        return Wait(error.reason, error.after, str(error))
    except DriverError as error:
        return Wait(error.reason, TROUBLE_AGAIN, str(error))
