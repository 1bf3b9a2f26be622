"""``novacron up``, ``down``, ``status`` and the like: the local cluster as a whole."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from novacron.cli.consent import agree
from novacron.cli.failure import Failure
from novacron.cli.local import Adopted
from novacron.cli.operator import OperatorProcess
from novacron.cli.options import Format, families, minimum_memory, output, target, yes
from novacron.cli.target import Target
from novacron.cli.wiring import wiring_of
from novacron.localcluster.layout import Layout
from novacron.workplace.home import Home
from novacron.workplace.lock import holding

__all__ = ["doctor", "down", "kubeconfig", "kubectl", "purge", "status", "up"]

MOST_HOSTS = 16


@click.command()
@click.option(
    "--provider",
    type=click.Choice(["libvirt", "simulation"]),
    help="What runs the machines: QEMU on this machine, or nothing real. Default: libvirt, or "
    "what the cluster was set up with.",
)
@click.option(
    "--hosts",
    type=click.IntRange(1, MOST_HOSTS),
    help="How many hosts this machine is to be; without root two at most. Default: 1, or as many "
    "as there are.",
)
@click.option(
    "--kubernetes-bin",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A directory with ready-made etcd, kube-apiserver, … and kubectl.",
)
@click.option(
    "--with",
    "additions",
    type=click.Choice(["kubevirt"]),
    multiple=True,
    help="Also a KubeVirt control plane: virt-api and virt-controller are real, its nodes are "
    "a stand-in and guests do not run. It stays until `novacron purge`.",
)
@families
@minimum_memory("64Mi")
@yes
@target
@click.pass_context
def up(
    context: click.Context,
    *,
    target: Target,
    provider: str | None,
    hosts: int | None,
    kubernetes_bin: Path | None,
    additions: Sequence[str],
    families: Sequence[str],
    minimum_memory: str,
    yes: bool,
) -> None:
    """Set up everything with a first machine, or repair it.

    What runs already stays as it is. With --context an existing cluster is used and no control
    plane is started.
    """
    from novacron.cli.display import display  # noqa: PLC0415
    from novacron.cli.provider import chosen  # noqa: PLC0415
    from novacron.cli.up import Up  # noqa: PLC0415 - heavy

    home = Home.default()
    with holding(home.lock, "novacron up"):
        call = Up(
            home=home,
            wiring=wiring_of(context),
            provider=chosen(home, provider, hosts),
            families=families,
            display=display(),
            minimum_memory=minimum_memory,
            kubernetes_bin=kubernetes_bin,
            assume_yes=yes,
            additions=additions,
        )
        if target.context and additions:
            raise Failure("--with adds to a cluster of our own only; leave out --context")
        if target.context:
            call.adopt(_existing(target.kubeconfig, target.context))
        else:
            call.local()


@click.command()
def down() -> None:
    """Stop everything; the data stays for the next ``up``."""
    home = Home.default()
    with holding(home.lock, "novacron down"):
        stopped = _stop(home)
    click.echo(f"stopped {', '.join(stopped)}" if stopped else "nothing was running")


@click.command()
@output()
def status(*, output: Format) -> None:
    """Show every component; exit code 1 when one does not run."""
    from novacron.cli.output import show_value, table  # noqa: PLC0415
    from novacron.cli.status import components  # noqa: PLC0415

    found = components(Home.default())
    if output is Format.TABLE:
        titles = ("COMPONENT", "STATE", "PID", "PORT", "LOG")
        click.echo(table(titles, [(c.name, c.state, c.pid, c.port, c.log) for c in found]))
    else:
        show_value(output, {"components": [component.document() for component in found]})
    if any(component.state != "running" for component in found):
        raise SystemExit(1)


@click.command()
@click.option("--cache", is_flag=True, help="Also the Kubernetes programs, which others may use.")
@yes
def purge(*, yes: bool, cache: bool) -> None:
    """Stop the local cluster and remove it with all its data."""
    from novacron.localcluster.purge import doomed  # noqa: PLC0415
    from novacron.localcluster.purge import purge as remove  # noqa: PLC0415

    home = Home.default()
    paths = doomed(home, cache=cache)
    if paths and not yes:
        click.echo("This stops the local cluster and removes, with all data in it:")
        click.echo("\n".join(f"  {path}" for path in paths))
        agree("Go on?", yes=yes)
    adopted = Adopted.read(home)
    with holding(home.lock, "novacron purge"):
        _stop(home)
        removed = remove(home, cache=cache)
    click.echo("\n".join(f"removed {path}" for path in removed) or "there was nothing to remove")
    if adopted:
        click.echo(f"what was installed in the cluster of context {adopted.context} stays there")


@click.command()
@output()
def doctor(*, output: Format) -> None:
    """Check all that ``up`` needs and say how to mend it.

    Exit code 1 when something is wrong.
    """
    from novacron.cli.output import show_value, table  # noqa: PLC0415
    from novacron.cli.provider import chosen  # noqa: PLC0415
    from novacron.localcluster.doctor import examine  # noqa: PLC0415

    home = Home.default()
    findings = [*examine(home), *chosen(home, None).examine()]
    if output is Format.TABLE:
        rows = [(f.name, "fine" if f.fine else "wrong", f.state, f.remedy) for f in findings]
        click.echo(table(("CHECKED", "RESULT", "FOUND", "REMEDY"), rows))
    else:
        shown = [{"name": f.name, "fine": f.fine, "found": f.state, "remedy": f.remedy}
                 for f in findings]  # fmt: skip
        show_value(output, {"findings": shown})
    if not all(finding.fine for finding in findings):
        raise SystemExit(1)


@click.command()
def kubeconfig() -> None:
    """Print where the kubeconfig of the cluster is."""
    home = Home.default()
    adopted = Adopted.read(home)
    path = Path(adopted.kubeconfig) if adopted else Layout(home.cluster).kubeconfig()
    if not path.exists():
        raise Failure("there is no local cluster yet; start one with `novacron up`")
    click.echo(str(path))


# Everything from the first word on is kubectl's own, a `--` among it too.
@click.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def kubectl(arguments: Sequence[str]) -> None:
    """Run kubectl for the local cluster, as in ``kubectl get vm``."""
    from novacron.localcluster.binaries import locate  # noqa: PLC0415
    from novacron.workplace.progress import Silent  # noqa: PLC0415

    home = Home.default()
    program = locate(home.cache, None, Silent()) / "kubectl"
    config = Layout(home.cluster).kubeconfig()
    os.execv(program, [str(program), f"--kubeconfig={config}", *arguments])  # noqa: S606


def _stop(home: Home) -> list[str]:
    """Stop the operator first, so that it starts no guest again, then what it leans on."""
    from novacron.localcluster.hypervisor import Arrangement  # noqa: PLC0415
    from novacron.localcluster.stopping import stop_all  # noqa: PLC0415

    operator = ["operator"] if OperatorProcess(home).stop() else []
    guests = ["hypervisor"] if Arrangement(home.state).stop() else []
    return operator + guests + stop_all(Layout(home.cluster))


def _existing(kubeconfig: Path | None, context: str) -> Adopted:
    named = os.environ.get("KUBECONFIG", "").partition(os.pathsep)[0]
    path = kubeconfig or Path(named or Path.home() / ".kube" / "config")
    return Adopted(str(path.absolute()), context)
