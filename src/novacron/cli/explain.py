"""``novacron explain``: why a machine is where it is, or why nowhere."""

from typing import TYPE_CHECKING, Any

import click

from novacron.cli.failure import Failure
from novacron.cli.kinds import HOSTS, MACHINES, condition, fetch, fetch_all, status
from novacron.cli.options import Format, namespaced_target, output
from novacron.cli.output import show_value, table
from novacron.cli.session import run
from novacron.cli.target import Target
from novacron.cli.wiring import wiring_of
from novacron.runtime.resource import Resource

if TYPE_CHECKING:
    from novacron.runtime.client import Client
    from novacron.runtime.resource import Object
    from novacron.scheduler import Decision

__all__ = ["explain"]

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
TITLES = ("HOST", "FITS", "SCORE", "WHY")


@click.group()
def explain() -> None:
    """Why things are as they are."""


@explain.command("vm")
@click.argument("name")
@output()
@namespaced_target
@click.pass_context
def explain_machine(context: click.Context, *, target: Target, name: str, output: Format) -> None:
    """Show for each host why a machine would or would not go there.

    As things are now; and what came of it when the machine was placed, or was last tried.
    """
    from novacron.core.errors import Rejected  # noqa: PLC0415

    async def read(client: "Client", current: str) -> "tuple[Object, Decision]":
        machine = await fetch(client, MACHINES, name, current)
        hosts = await fetch_all(client, HOSTS)
        # Rules are about the machines of any namespace, and hosts are shared by all.
        machines = await fetch_all(client, MACHINES)
        namespaces = await fetch_all(client, NAMESPACES)
        return machine, wiring_of(context).explain(machine, hosts, machines, namespaces)

    try:
        machine, decision = run(target, read)
    except Rejected as error:
        raise Failure(f"{name} cannot be placed: {error}") from error
    if output is Format.TABLE:
        click.echo(_page(machine, decision))
    else:
        show_value(output, _account(machine, decision))


def _account(machine: "Object", decision: "Decision") -> dict[str, Any]:
    from novacron.scheduler import one_line, rated, refusals  # noqa: PLC0415 - heavy

    fitting = [
        {"host": each.host, "fits": True, "score": each.score, "scores": dict(each.scores)}
        for each in rated(decision)
    ]
    refused = [
        {"host": each.host, "fits": False, "filter": each.filter, "reason": each.sentence}
        for each in refusals(decision)
    ]
    return {
        "machine": machine["metadata"]["name"],
        "namespace": machine["metadata"]["namespace"],
        "host": status(machine).get("nodeName"),
        "when": condition(machine, "Placed").get("message"),
        "now": one_line(decision),
        "hosts": [*fitting, *refused],
    }


def _page(machine: "Object", decision: "Decision") -> str:
    account = _account(machine, decision)
    name, host = account["machine"], account["host"]
    lines = [f"{name} is on host {host}" if host else f"{name} is on no host"]
    if account["when"] and (host or account["when"] != account["now"]):
        placed = condition(machine, "Placed").get("status") == "True"
        lines.append(f"when it was {'placed' if placed else 'last tried'}: {account['when']}")
    lines.append(f"{'if it were placed now' if host else 'now'}: {account['now']}")
    if account["hosts"]:
        lines += ["", table(TITLES, [_row(each) for each in account["hosts"]])]
    return "\n".join(lines)


def _row(each: dict[str, Any]) -> list[object]:
    if each["fits"]:
        scores = ", ".join(f"{name} {rating:.2f}" for name, rating in each["scores"].items())
        return [each["host"], "yes", f"{each['score']:.2f}", scores]
    reason = each["reason"].removeprefix(f"host {each['host']} ")
    return [each["host"], "no", "", f"{each['filter']}: {reason}"]
