"""How a change that a running machine cannot take is made."""

from typing import Annotated, Literal

from novacron.crd import IntOrString, Model, Rule

__all__ = ["RollingUpdate", "UpdateStrategy"]


class RollingUpdate(Model):
    """How many machines may be away at once."""

    max_unavailable: Annotated[
        IntOrString,
        Rule(
            "type(self) == int ? self >= 0 : string(self).matches('^[0-9]{1,3}%$')",
            "must be a whole number or a percentage such as 25%",
        ),
    ] = 1
    """A number of machines or a percentage of them; of a single machine only 0 counts, which
    forbids restarts."""


class UpdateStrategy(Model):
    """How a change that needs a restart is made."""

    __rules__ = (
        Rule(
            "!has(self.rollingUpdate) || self.type == 'RollingUpdate'",
            "rollingUpdate is for type RollingUpdate only",
            field_path=".rollingUpdate",
            reason="FieldValueForbidden",
        ),
    )

    type: Literal["RollingUpdate", "Recreate"] = "RollingUpdate"
    """RollingUpdate gives notice and asks maxUnavailable, Recreate restarts at once."""
    rolling_update: RollingUpdate | None = None
    """How fast RollingUpdate goes."""
