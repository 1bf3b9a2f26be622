"""The command line starts fast, explains itself, and finds the cluster that is meant."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cpu_time import cost_beside_python, starting
from novacron.cli.local import Adopted
from novacron.cli.target import Target
from novacron.localcluster.layout import Layout
from novacron.workplace.home import Home

NOVACRON = (sys.executable, "-m", "novacron.app.entry")
HEAVY = ("aiohttp", "cryptography", "numpy", "orjson", "pydantic", "rich", "uvloop", "yaml")
COMMANDS = {
    "": "up down status purge doctor kubeconfig kubectl vm console vnc host image volume explain "
    "crd operator completion version",
    "vm": "list get create start stop restart delete describe snapshot migrate",
    "vm snapshot": "create list restore delete",
    "host": "add list get cordon uncordon drain fence unfence remove",
    "image": "list",
    "volume": "list delete",
    "explain": "vm",
    "crd": "print install",
    "operator": "run",
}


@pytest.fixture
def call(tmp_path):
    """Run the command as a user with nothing set up."""

    def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("NOVACRON", "KUBE"))}
        return subprocess.run(
            [*NOVACRON, *arguments],
            env={**kept, "HOME": str(tmp_path), "NOVACRON_HOME": str(tmp_path), **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_it_starts_within_its_budget(call, tmp_path):
    """Little more than Python with what all commands are made of: people type it all day."""
    assert call("version").stdout.startswith("novacron ")
    environment = {**os.environ, "NOVACRON_HOME": str(tmp_path)}
    peer = starting("asyncio", "click")
    assert cost_beside_python([*NOVACRON, "version"], peer, environment) < 1.5


def test_nothing_heavy_is_imported_to_show_help():
    """Each of these costs more than all of Python's own start."""
    script = (
        "import sys; from novacron.app import entry\n"
        "try: entry.main()\n"
        f"except SystemExit: print([name for name in {HEAVY} if name in sys.modules])"
    )
    for arguments in (["--help"], ["vm", "--help"], ["operator", "run", "--help"], ["version"]):
        done = subprocess.run(
            [sys.executable, "-c", script, *arguments],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout.splitlines()[-1] == "[]", arguments


def test_every_command_explains_itself(call):
    """`--help` everywhere, and in every list of commands a line of what it does."""
    for group, names in COMMANDS.items():
        shown = call(*group.split(), "--help").stdout
        listed = [line.split()[0] for line in shown.partition("Commands:\n")[2].splitlines()]
        assert sorted(listed) == sorted(names.split())
    assert "--leader-elect / --no-leader-elect" in call("operator", "run", "--help").stdout


@pytest.mark.parametrize(
    "group", ["", "vm", "vm snapshot", "host", "explain", "image", "volume", "crd", "operator"]
)
def test_what_is_said_of_a_command_in_a_list_is_said_to_its_end(call, group):
    """It breaks off elsewhere before that what was written is lost."""
    listed = call(*group.split(), "--help").stdout.partition("Commands:\n")[2]
    assert [line for line in listed.splitlines() if line.endswith("...")] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("no-such-command",),
        ("vm", "get"),
        ("vm", "list", "-o", "xml"),
        ("vm", "create", "x"),
        ("host", "add", "x", "--label", "novalue"),
        ("host", "add", "x", "--taint", "k=v:Sometimes"),
        ("up", "--provider", "magic"),
        ("up", "--kubernetes-bin", "/nonexistent"),
        ("operator", "run", "--workers", "0"),
        ("operator", "run", "--reconcile-interval", "soon"),
        ("operator", "run", "--reconcile-interval", "0s"),
    ],
)
def test_wrong_usage_is_exit_code_two(call, arguments):
    """Scripts tell a typing error from a failure."""
    done = call(*arguments)
    assert done.returncode == 2
    assert "Error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_without_a_cluster_the_way_to_one_is_told(call):
    """The first thing many people will see."""
    for arguments in (("vm", "list"), ("host", "list"), ("kubeconfig",), ("crd", "install")):
        done = call(*arguments)
        assert done.returncode == 1
        assert "`novacron up`" in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_cluster_that_does_not_answer_is_named(call, tmp_path):
    """A laptop was closed, a tunnel is gone."""
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "users": [{"name": "u", "user": {}}],
    }
    path = tmp_path / "config"
    path.write_text(json.dumps(config))
    done = call("vm", "list", KUBECONFIG=str(path))
    assert done.returncode == 1
    assert "no cluster answers at http://127.0.0.1:9" in done.stderr


def test_kubectl_finds_it_as_a_plug_in(tmp_path):
    """`kubectl novacron vm list` runs kubectl-novacron, and the help says so."""
    plug_in = Path(sys.executable).parent / "kubectl-novacron"
    done = subprocess.run([plug_in, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: kubectl novacron ")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_it(call, shell):
    """The script asks the program itself for what may come next."""
    assert "_NOVACRON_COMPLETE" in call("completion", shell).stdout
    completed = call(
        _NOVACRON_COMPLETE="bash_complete", COMP_WORDS="novacron vm de", COMP_CWORD="2"
    )
    assert {"plain,delete", "plain,describe"} <= set(completed.stdout.split())


def test_definitions_are_printed_in_every_form(call):
    """For GitOps repositories, for tools, for a quick look."""
    names = call("crd", "print", "-o", "table").stdout.split()
    assert "virtualmachines.novacron.io" in names
    listed = json.loads(call("crd", "print", "-o", "json").stdout)
    assert [item["metadata"]["name"] for item in listed["items"]] == names
    assert call("crd", "print").stdout.count("kind: CustomResourceDefinition") == len(names)


def test_the_kubeconfig_is_the_users_then_the_local_clusters(tmp_path, monkeypatch):
    """An explicit choice wins over a cluster that merely happens to be up."""
    monkeypatch.setenv("NOVACRON_HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    home = Home.default()
    named = Target(Path("/mine"), "c")
    assert named.resolved() == named
    # A kubeconfig is left over from a cluster that is down: not that one.
    Layout(home.cluster).kubeconfig().parent.mkdir(parents=True)
    Layout(home.cluster).kubeconfig().write_text("{}")
    assert Target().resolved() == Target()
    Adopted("/theirs", "prod").write(home)
    assert Target().resolved() == Target(Path("/theirs"), "prod")
    assert Target(context="other").resolved() == Target(context="other")
    monkeypatch.setenv("KUBECONFIG", "/env")
    assert Target().resolved() == Target()


def test_a_snapshot_is_not_called_by_a_number(call):
    """It could be taken for another one; said at once, whatever cluster is meant."""
    done = call("vm", "snapshot", "create", "web", "42")
    assert (done.returncode != 0, "not only digits" in done.stderr) == (True, True)
