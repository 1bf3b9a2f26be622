"""KVM counts only when it truly works: the CPU, the device, and what it answers."""

import pytest

from novacron.localcluster.hypervisor import kvm

WITH = "processor : 0\nflags\t\t: fpu vme svm sse2\n"
WITHOUT = "processor : 0\nflags\t\t: fpu vme sse2 svmlike\n"


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with these CPUs and a device that is only a file."""

    def make(cpus: str, *, device: bool = True, mode: int = 0o660) -> None:
        monkeypatch.setattr(kvm, "CPUS", tmp_path / "cpuinfo")
        monkeypatch.setattr(kvm, "DEVICE", tmp_path / "kvm")
        kvm.CPUS.write_text(cpus)
        if device:
            kvm.DEVICE.touch()
            kvm.DEVICE.chmod(mode)

    return make


def test_a_cpu_without_virtualization_emulates_whatever_devices_there_are(machine):
    """A device file can be made anywhere."""
    machine(WITHOUT)
    assert kvm.why_emulated() == "this CPU offers no virtualization"


def test_a_missing_device_is_told_with_its_remedy(machine):
    """The kernel's module was not loaded."""
    machine(WITH, device=False)
    assert "load the kernel's module" in kvm.why_emulated()


def test_a_device_that_does_not_answer_is_no_kvm(machine):
    """Containers often have one that leads nowhere."""
    machine(WITH)
    assert "does not answer as KVM does" in kvm.why_emulated()


@pytest.mark.parametrize(("mode", "may"), [(0o600, False), (0o660, False), (0o666, True)])
def test_guests_may_use_a_device_that_is_not_roots_alone(machine, mode, may):
    """Guests that root starts are neither root nor in root's group."""
    machine(WITH, mode=mode)
    if kvm.DEVICE.stat().st_gid:
        pytest.skip("only root makes files of root's group")
    assert kvm.open_to_guests() == may
