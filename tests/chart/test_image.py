"""The Dockerfile, as far as it can be checked without a container engine."""

import fnmatch
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from chart.conftest import Render
from helm import REPOSITORY

LOCKS = (
    "requirements-bootstrap.lock",
    "requirements.lock",
    "$locks/libvirt-build.lock",
    "$locks/libvirt.lock",
)


class Step(NamedTuple):
    """One instruction of a Dockerfile."""

    word: str
    rest: str

    @property
    def sources(self) -> list[str]:
        """What a COPY takes from the repository."""
        words = self.rest.split()
        return [] if self.word != "COPY" or words[0].startswith("--from") else words[:-1]


def stages() -> list[list[Step]]:
    """Return the instructions of each stage."""
    lines = (REPOSITORY / "Dockerfile").read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#")).replace("\\\n", " ")
    found: list[list[Step]] = []
    for line in filter(None, text.splitlines()):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append(Step(word, " ".join(rest.split())))
    return found


BUILD, FINAL = stages()


def test_everything_that_is_copied_exists_and_is_sent_to_the_builder() -> None:
    """The builder gets nothing but what .dockerignore lets through."""
    let_through = [
        line.removeprefix("!")
        for line in (REPOSITORY / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    ]
    copied = [source for step in (*BUILD, *FINAL) for source in step.sources]
    assert sorted(copied) == sorted(let_through)
    for source in copied:
        assert (REPOSITORY / source).exists(), source


def test_every_package_comes_from_a_lock_with_hashes() -> None:
    """What is tested is what is delivered."""
    installs = [
        command
        for step in BUILD
        if step.word == "RUN"
        for command in step.rest.split("&&")
        if " pip install " in command
    ]
    locked = [command for command in installs if "--require-hashes" in command]
    assert [next(lock for lock in LOCKS if lock in command.split()) for command in locked] == [
        *LOCKS
    ]
    [own] = [command for command in installs if command not in locked]
    assert {"--no-deps", "--no-build-isolation", "."} <= set(own.split())


def test_the_image_runs_as_the_user_that_the_chart_names(render: Render) -> None:
    """A number, because a kubelet can check only that against runAsNonRoot."""
    [user] = [step.rest for step in FINAL if step.word == "USER"]
    [deployment] = [each for each in render() if each["kind"] == "Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    security = pod["securityContext"]
    assert user == f"{security['runAsUser']}:{security['runAsGroup']}"
    [entry] = [step.rest for step in FINAL if step.word == "ENTRYPOINT"]
    assert entry == '["/manager"]'
    assert pod["containers"][0]["command"] == ["/manager"]


def test_nothing_that_builds_is_left_in_the_image() -> None:
    """Only what the first stage made is taken over, and pip goes."""
    copies = [step.rest for step in FINAL if step.word == "COPY"]
    assert copies == [
        "--from=build /opt/novacron /opt/novacron",
        "--from=build /images /usr/share/novacron/images",
    ]
    [run] = [step.rest for step in FINAL if step.word == "RUN"]
    assert "pip uninstall --yes pip" in run
    assert "--no-install-recommends libvirt0 openssh-client" in run
    assert not re.search(r"gcc|-dev|pip install", run)


# With a copy of /etc that only it sees, and that goes with it.
IN_THE_IMAGE = """
mount -t tmpfs -o mode=700 none "$1"
cp -a /etc "$1/etc"
mount --bind "$1/etc" /etc
sh -ec "$2"
exec setpriv --reuid "$3" --regid "$4" --clear-groups ssh -G localhost
"""


def test_ssh_works_for_the_user_of_the_image(tmp_path: Path) -> None:
    """It refuses to for one that /etc/passwd does not know, so no host could be reached by it."""
    [run] = [step.rest for step in FINAL if step.word == "RUN"]
    [(user, group)] = [step.rest.split(":") for step in FINAL if step.word == "USER"]
    [variables] = [step.rest for step in FINAL if step.word == "ENV"]
    [home] = re.findall(r"HOME=(\S+)", variables)
    steps = [step for step in run.split(" && ") if re.match("(group|user)add ", step)]

    def ssh(*made: str) -> subprocess.CompletedProcess[str]:
        script = ["sh", "-ec", IN_THE_IMAGE, "", tmp_path, " && ".join(made), user, group]
        command = ["unshare", "--mount", *script]
        as_there = {**os.environ, "HOME": home}
        return subprocess.run(command, env=as_there, capture_output=True, text=True, check=False)

    told = ssh(*steps)
    assert told.returncode == 0, told.stderr
    assert "\nuser novacron\n" in f"\n{told.stdout}"
    assert f"No user exists for uid {user}" in ssh().stderr


@pytest.mark.full
def test_the_steps_of_the_build_make_a_working_operator(tmp_path: Path) -> None:
    """Run here one by one with other paths; it is the base image that remains unproven."""
    places = {"/opt/novacron": "opt", "/tools": "tools", "/images": "images"}
    source = tmp_path / "src"
    source.mkdir()
    for step in BUILD:
        for name in step.sources:
            copy = shutil.copytree if (REPOSITORY / name).is_dir() else shutil.copy
            copy(REPOSITORY / name, source / name)
        if step.word == "RUN":
            command = step.rest
            for place, name in places.items():
                command = command.replace(place, str(tmp_path / name))
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
            subprocess.run(
                ["sh", "-ec", command], cwd=source, env={**os.environ, "PATH": path}, check=True
            )
    shutil.rmtree(source)
    manager = [tmp_path / "opt/bin/manager", "--help"]
    told = subprocess.run(manager, capture_output=True, text=True, check=True, env={"HOME": "/tmp"})
    assert "--leader-elect" in told.stdout
    binding = [tmp_path / "opt/bin/python", "-c", "import libvirt"]
    subprocess.run(binding, check=True)
    assert (tmp_path / "images/tiny.qcow2").read_bytes().startswith(b"QFI")
    listing = [tmp_path / "opt/bin/novacron", "crd", "print", "-o", "table"]
    told = subprocess.run(listing, capture_output=True, text=True, check=True, env={"HOME": "/tmp"})
    assert "virtualmachines.novacron.io" in told.stdout
    left = [path.name for path in (tmp_path / "opt/bin").iterdir()]
    assert not fnmatch.filter(left, "pip*")
    assert not fnmatch.filter(left, "uv")
    assert not list((tmp_path / "opt").rglob("site-packages/setuptools"))
