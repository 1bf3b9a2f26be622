"""The user of guests exists for the daemon alone, unless the machine has it."""

import pytest

from novacron.localcluster.hypervisor import account

ROOT = "root:x:0:0:root:/root:/bin/sh"
ENTRY = "libvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin\n"
THERE = "libvirt-qemu:x:64055:107:Libvirt Qemu,,,:/var/lib/libvirt:/usr/sbin/nologin\n"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with these users."""
    (tmp_path / "own").mkdir()

    def make(text: str):
        path = tmp_path / "passwd"
        path.write_text(text)
        monkeypatch.setattr(
            account, "ENTRIES", {path: account.ENTRIES[account.Path("/etc/passwd")]}
        )
        return account.own_accounts(tmp_path / "own")

    return make


def test_a_machine_that_has_the_user_is_left_as_it_is(machine):
    """Somebody installed libvirt's system service."""
    assert machine(f"{ROOT}\n{THERE}") == {}


@pytest.mark.parametrize("end", ["\n", "", "\n# not libvirt-qemu:\n"])
def test_a_machine_without_it_shows_the_daemon_one_more(machine, end):
    """Nothing is added to the machine's own files, and nothing of them is lost."""
    ((copy, original),) = machine(ROOT + end).items()
    assert original.read_text() == ROOT + end
    assert copy.read_text().startswith(ROOT + "\n")
    assert copy.read_text().endswith(
        "\nlibvirt-qemu:x:64055:64055::/nonexistent:/usr/sbin/nologin\n"
    )
