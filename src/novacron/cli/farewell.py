"""The last screen of ``up``: what runs, and what to type next."""

import shutil
import sys
from pathlib import Path

import click

from novacron.cli.kinds import MACHINE_COLUMNS
from novacron.cli.options import Format
from novacron.cli.output import show_list
from novacron.cli.welcome import FIRST_MACHINE, Welcomed

__all__ = ["farewell"]

KUBEVIRT = (
    "KubeVirt's control plane is real; its nodes kubevirt-1 to kubevirt-3 and their volumes are "
    "a stand-in.\nVirtualMachines of KubeVirt become Running, but no guest runs and nothing is "
    "stored."
)


def farewell(
    welcomed: Welcomed, *, changed: bool, kubectl: Path | None, kubevirt: bool = False
) -> None:
    """Show the machines and how to go on; ``kubectl`` is ours, if the cluster is."""
    click.echo("\nThe cluster is up." if changed else "\nThe cluster is already running.")
    if welcomed.machines:
        show_list(Format.TABLE, welcomed.machines, MACHINE_COLUMNS)
    if welcomed.console:
        click.echo(f"\nThe end of {FIRST_MACHINE}'s console:")
        click.echo("\n".join(f"  {line}" for line in welcomed.console))
    if kubevirt:
        click.echo(f"\n{KUBEVIRT}")
    novacron, on_path = called_as(), shutil.which("kubectl")
    prefix = "kubectl" if on_path or not kubectl else f"{novacron} kubectl"
    hints = [
        *([f"export KUBECONFIG=$({novacron} kubeconfig)"] if kubectl else []),
        f"{prefix} get virtualmachines.novacron.io",
        *([f"{prefix} apply -f examples/50-machine-basic.yaml"] if kubevirt else []),
        *([f"{prefix} get machines,vm.kubevirt.io,vmi -A"] if kubevirt else []),
        f"{novacron} vm describe {FIRST_MACHINE}",
        *([f"{novacron} console {FIRST_MACHINE}"] if welcomed.console else []),
        f"{novacron} vm create web --image builtin://tiny --wait",
        f"{novacron} status",
        f"{novacron} down",
    ]
    click.echo("\nType next:\n" + "\n".join(f"  {hint}" for hint in hints))
    if kubectl and not on_path:
        click.echo(f"kubectl is not on your PATH; ours is {kubectl}")


def called_as() -> str:
    """Return what to type to call us again: our name if a shell finds it, or else the path."""
    found = shutil.which("novacron")
    called = Path(sys.argv[0])
    if found and called.exists() and Path(found).samefile(called):
        return "novacron"
    return str(called)
