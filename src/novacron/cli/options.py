"""Options that many commands share, written once."""

from collections.abc import Callable
from enum import StrEnum
from functools import wraps
from pathlib import Path
from typing import Any

import click

from novacron.cli.target import Target

__all__ = [
    "USUAL_MINIMUM_MEMORY",
    "Format",
    "families",
    "minimum_memory",
    "namespaced_target",
    "output",
    "split",
    "target",
    "timeout",
    "waiting",
    "yes",
]

Command = Callable[..., None]

USUAL_MINIMUM_MEMORY = "512Mi"


class Format(StrEnum):
    """How things read are shown."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def split(text: str) -> tuple[str, ...]:
    """Return the words of a list with commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def output(default: Format = Format.TABLE) -> Callable[[Command], Command]:
    """Add ``-o``; programs get the same facts as people."""
    return click.option(
        "-o",
        "--output",
        type=click.Choice([each.value for each in Format]),
        callback=lambda _context, _parameter, value: Format(value),
        default=default.value,
        show_default=True,
        help="How to show it.",
    )


families = click.option(
    "--families",
    default="novacron",
    show_default=True,
    callback=lambda _context, _parameter, value: split(value),
    help="API families: novacron, all, or a list with commas.",
)


def minimum_memory(
    default: str | None = USUAL_MINIMUM_MEMORY,
) -> Callable[[Command], Command]:
    """Add the least memory of a machine; without a default, that of the cluster stays."""
    return click.option(
        "--minimum-memory",
        default=default,
        show_default=default or f"what the cluster has, else {USUAL_MINIMUM_MEMORY}",
        envvar="NOVACRON_MINIMUM_MEMORY",
        help="The least memory a machine may ask for; part of the installed kinds.",
    )


yes = click.option("-y", "--yes", is_flag=True, help="Ask nothing.")

_kubeconfig = click.option(
    "--kubeconfig",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Default: $KUBECONFIG, the local cluster's if it is up, ~/.kube/config.",
)
_context = click.option("--context", help="A context of the kubeconfig.")
_namespace = click.option("-n", "--namespace", help="Default: the context's, or default.")


def target(command: Command) -> Command:
    """Add the options that say which cluster is meant; the command gets one ``target``."""

    @_kubeconfig
    @_context
    @wraps(command)
    def wrapped(kubeconfig: Path | None, context: str | None, **rest: Any) -> None:  # noqa: ANN401
        named = Target(kubeconfig, context, rest.pop("namespace", None))
        command(target=named, **rest)

    return wrapped


def namespaced_target(command: Command) -> Command:
    """Add the options that say which cluster is meant, and which namespace of it."""
    return _namespace(target(command))


def waiting(command: Command) -> Command:
    """Add ``--wait`` and ``--timeout``; the command gets seconds, or None for no waiting."""

    @click.option("--wait", is_flag=True, help="Wait until it is so.")
    @timeout
    @wraps(command)
    def wrapped(wait: bool, timeout: float, **rest: Any) -> None:  # noqa: ANN401
        command(seconds=timeout if wait else None, **rest)

    return wrapped


timeout = click.option(
    "--timeout",
    type=click.FloatRange(min=0),
    default=300.0,
    show_default=True,
    help="Seconds to wait.",
)
