"""By what word a machine that is set up as it is to be is told from one that is not."""

from dataclasses import replace

from novacron.core.machine import MachinePlan, MachineRef, Resources

PLAN = MachinePlan(MachineRef("uid", "default", "vm", "a"), Resources(1, 192, 64), "builtin://tiny")
TOLD = replace(PLAN, user_data="password: secret")


def test_other_user_data_is_another_recipe() -> None:
    """So whoever thinks of something else before the first start is heard."""
    assert len({PLAN.recipe, TOLD.recipe, replace(TOLD, user_data="#!/bin/sh").recipe}) == 3


def test_no_user_data_changes_no_recipe() -> None:
    """Or every machine there is would be set up anew for nothing."""
    assert replace(PLAN, user_data="").recipe == PLAN.recipe


def test_a_recipe_does_not_tell_who_has_the_same_secret() -> None:
    """It is kept where more people read than may read a machine's user data."""
    other = replace(TOLD, ref=replace(TOLD.ref, uid="another"))
    assert other.recipe != TOLD.recipe
