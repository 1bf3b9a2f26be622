"""Tokens from files and from plug-ins."""

import asyncio
import json
import stat
import textwrap
from pathlib import Path

import pytest

from loopback import until
from novacron.runtime.credentials import Anonymous, ExecPlugin, StaticToken, TokenFile
from novacron.runtime.errors import Unauthorized


class Clock:
    """Time as the test says."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text("first\n")
    return path


async def test_no_token_is_no_header() -> None:
    """A client certificate speaks instead."""
    assert await Anonymous().header() is None
    Anonymous().forget()


async def test_a_static_token_stays() -> None:
    """There is no other to take."""
    credentials = StaticToken("s3cret")
    credentials.forget()
    assert await credentials.header() == "Bearer s3cret"
    assert "s3cret" not in repr(credentials)


async def test_a_token_file_is_read_again_every_minute(token: Path) -> None:
    """The kubelet replaces it long before it expires."""
    clock = Clock()
    credentials = TokenFile(token, clock)
    assert await credentials.header() == "Bearer first"
    token.write_text("second\n")
    clock.now = 59
    assert await credentials.header() == "Bearer first"
    clock.now = 60
    assert await credentials.header() == "Bearer second"
    assert "second" not in repr(credentials)


async def test_a_refused_token_is_read_again_at_once(token: Path) -> None:
    """The file may hold the next one already."""
    credentials = TokenFile(token, Clock())
    await credentials.header()
    token.write_text("second")
    credentials.forget()
    assert await credentials.header() == "Bearer second"


async def test_a_token_file_that_vanishes_for_a_moment_does_no_harm(token: Path) -> None:
    """It is replaced by somebody else, not always in one step."""
    clock = Clock()
    credentials = TokenFile(token, clock)
    await credentials.header()
    token.unlink()
    clock.now = 61
    assert await credentials.header() == "Bearer first"


async def test_a_token_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """ "No answer from the API server" would send everybody looking in the wrong place."""
    with pytest.raises(Unauthorized, match="absent"):
        await TokenFile(tmp_path / "absent").header()


def plugin(tmp_path: Path, body: str) -> ExecPlugin:
    """Write a plug-in that counts its runs, and return the credentials that call it."""
    path = tmp_path / "plugin"
    path.write_text(
        "#!/bin/sh\necho run >> " + str(tmp_path / "runs") + "\n" + textwrap.dedent(body)
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return ExecPlugin(
        [str(path), "get-token"], {"PROFILE": "p1"}, "client.authentication.k8s.io/v1"
    )


def runs(tmp_path: Path) -> int:
    return len((tmp_path / "runs").read_text().splitlines())


def prints(status: object) -> str:
    return f"echo '{json.dumps({'kind': 'ExecCredential', 'status': status})}'\n"


async def test_a_plugin_is_run_once_for_many_requests(tmp_path: Path) -> None:
    """Cloud logins are slow, and sixteen workers start at once."""
    credentials = plugin(tmp_path, "sleep 0.2\n" + prints({"token": "t1"}))
    headers = await asyncio.gather(*(credentials.header() for _ in range(16)))
    assert set(headers) == {"Bearer t1"}
    assert runs(tmp_path) == 1
    assert "t1" not in repr(credentials)


async def test_a_plugin_is_run_again_when_its_token_expired_or_was_refused(tmp_path: Path) -> None:
    """A token that says when it ends is not used longer."""
    expired = {"token": "t1", "expirationTimestamp": "2020-01-01T00:00:00Z"}
    credentials = plugin(tmp_path, prints(expired))
    await credentials.header()
    await credentials.header()
    assert runs(tmp_path) == 2
    lasting = plugin(
        tmp_path, prints({"token": "t1", "expirationTimestamp": "2999-01-01T00:00:00Z"})
    )
    await lasting.header()
    await lasting.header()
    assert runs(tmp_path) == 3
    lasting.forget()
    await lasting.header()
    assert runs(tmp_path) == 4


async def test_a_plugin_is_told_what_the_kubeconfig_says(tmp_path: Path) -> None:
    """Its environment, its arguments, and that nobody sits at a keyboard."""
    credentials = plugin(
        tmp_path,
        """
        printf '%s\\n%s\\n%s\\n' "$1" "$PROFILE" "$KUBERNETES_EXEC_INFO" > "$0.told"
        cat > "$0.stdin"
        """
        + prints({"token": "t"}),
    )
    await asyncio.wait_for(credentials.header(), 30)
    argument, profile, info = (tmp_path / "plugin.told").read_text().splitlines()
    assert (argument, profile) == ("get-token", "p1")
    assert json.loads(info) == {
        "apiVersion": "client.authentication.k8s.io/v1",
        "kind": "ExecCredential",
        "spec": {"interactive": False},
    }
    assert (tmp_path / "plugin.stdin").read_text() == ""


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("exit 3", "ended with code 3"),
        ("echo s3cret", "no ExecCredential"),
        ("echo '[]'", "no ExecCredential"),
        ("echo '{}'", "no ExecCredential"),
        (prints({"expirationTimestamp": "soon", "token": "s3cret"}), "no ExecCredential"),
        (prints({"clientCertificateData": "s3cret"}), "gave no token"),
    ],
)
async def test_a_plugin_that_fails_is_named(tmp_path: Path, body: str, message: str) -> None:
    """One sentence says whose fault it is, and nothing it printed is in it."""
    with pytest.raises(Unauthorized, match=message) as caught:
        await plugin(tmp_path, body).header()
    assert "plugin" in caught.value.message
    assert "s3cret" not in caught.value.message


async def test_a_plugin_that_is_not_installed_is_named(tmp_path: Path) -> None:
    """The user must install it; the API server is not even asked."""
    with pytest.raises(Unauthorized, match="aws-nope cannot be run: No such file"):
        await ExecPlugin(["aws-nope"], {}, "client.authentication.k8s.io/v1").header()


async def test_a_plugin_does_not_outlive_who_asked(tmp_path: Path) -> None:
    """A cancelled request leaves no process behind."""
    credentials = plugin(tmp_path, 'echo $$ > "$0.pid"\nexec sleep 600')
    task = asyncio.create_task(credentials.header())
    pid_file = tmp_path / "plugin.pid"
    await until(lambda: pid_file.exists() and pid_file.read_text().strip() != "")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path("/proc", pid_file.read_text().strip()).exists()
