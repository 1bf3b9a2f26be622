"""The yardstick in Python: what a team would write with kopf to add a finalizer and a status.

Run by ``kopf run``; it knows nothing of this project but the kind. The handler for deletion is
what makes kopf add its finalizer.
"""
# kopf need not be installed where the types are checked.
# mypy: disable-error-code="import-not-found,untyped-decorator"

from datetime import UTC, datetime

import kopf

KIND = ("novacron.io", "v1alpha1", "virtualmachines")


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, **_: object) -> None:
    """Leave out what the other contenders leave out: events about every object."""
    settings.posting.enabled = False


@kopf.on.create(*KIND)
async def run(meta: kopf.Meta, patch: kopf.Patch, **_: object) -> None:
    """Say that the machine runs; kopf writes the patch after the handler."""
    patch.status["phase"] = "Running"
    patch.status["nodeName"] = "host-0"
    patch.status["conditions"] = [
        {
            "type": "Ready",
            "status": "True",
            "reason": "Running",
            "message": "The machine is running.",
            "observedGeneration": meta["generation"],
            "lastTransitionTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
    ]


@kopf.on.delete(*KIND)
async def release(**_: object) -> None:
    """Let the machine go."""
