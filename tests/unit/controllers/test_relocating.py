"""Requests to move between the nodes of a hypervisor, and when they become orders."""

from dataclasses import replace

from novacron.controllers.relocating import is_over, order_for
from novacron.core.machine import Machine, Power, Resources
from novacron.core.move import Move, MoveRequest

ASKED = Machine(
    uid="u",
    namespace="n",
    name="m",
    wanted=Resources(1, 1024, 10240),
    image="",
    power=Power.ON,
    move_request=MoveRequest("node-b"),
)


def test_a_request_becomes_an_order() -> None:
    """To the node that it names."""
    order = order_for(ASKED)
    assert order is not None
    assert order.target == "node-b"


def test_a_request_amid_a_move_waits_until_the_record_of_that_was_taken_away() -> None:
    """Which may answer it: the machine may have come to the very node."""
    assert order_for(replace(ASKED, relocation=Move("7", "", "node-c"))) is None
    over = replace(ASKED, move_over=True)
    assert order_for(over) is None
    assert is_over(over)
