"""The top of the command line: which commands there are, and where each is written.

click rather than Typer: Typer from 0.29 on builds every command with pydantic, which alone
costs more CPU time than a whole command may (docs/decisions).
"""

import sys
from collections.abc import Mapping
from pathlib import Path

import click

from novacron import __version__
from novacron.cli.failure import reported
from novacron.cli.lazy import LazyGroup
from novacron.cli.wiring import Wiring

__all__ = ["COMMANDS", "command_line", "run"]

CLUSTER = ("up", "down", "status", "purge", "doctor", "kubeconfig", "kubectl")
COMMANDS: Mapping[str, str] = {
    **{name: f"novacron.cli.cluster:{name}" for name in CLUSTER},
    "vm": "novacron.cli.vm:vm",
    "console": "novacron.cli.console:console",
    "vnc": "novacron.cli.vnc:vnc",
    "host": "novacron.cli.host:host",
    "image": "novacron.cli.image:image",
    "volume": "novacron.cli.volume:volume",
    "explain": "novacron.cli.explain:explain",
    "crd": "novacron.cli.crd:crd",
}
COMPLETION_VARIABLE = "_NOVACRON_COMPLETE"


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="novacron", message="%(prog)s %(version)s")
def command_line() -> None:
    """Virtual machines on Kubernetes: a local cluster, machines, hosts and the operator."""


@command_line.command()
def version() -> None:
    """Print the version."""
    click.echo(f"novacron {__version__}")


@command_line.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a script that completes commands in a shell.

    source <(novacron completion bash)
    """
    from click.shell_completion import get_completion_class  # noqa: PLC0415

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(command_line, {}, "novacron", COMPLETION_VARIABLE).source())


def run(wiring: Wiring, extra: Mapping[str, str]) -> None:
    """Run the command that the arguments name, with commands that only ``app`` can give."""
    assert isinstance(command_line, LazyGroup)
    command_line.sources = {**COMMANDS, **extra}
    # kubectl finds plug-ins as programs called kubectl-NAME; help should show what was typed.
    called = Path(sys.argv[0]).name
    name = "kubectl novacron" if called.startswith("kubectl") else "novacron"
    with reported():
        command_line.main(prog_name=name, complete_var=COMPLETION_VARIABLE, obj=wiring)
