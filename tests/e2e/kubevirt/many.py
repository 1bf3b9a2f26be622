"""Many Machines at once, and what they cost: requests, CPU and memory, as the operator counts."""

import time
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from e2e.kubevirt.machines import MachineStage

__all__ = ["Cost", "cost_of", "declare_many", "until_all_run", "until_looked_at"]

WRITES = ("create", "update", "patch", "apply", "delete")
READS = ("get", "list")
TICKS = 100  # per second, on every Linux there is


@dataclass(frozen=True)
class Cost:
    """What an operator spent so far."""

    writes: int
    reads: int
    cpu_seconds: float
    memory_mib: float

    def __sub__(self, before: "Cost") -> "Cost":
        return Cost(
            self.writes - before.writes,
            self.reads - before.reads,
            self.cpu_seconds - before.cpu_seconds,
            self.memory_mib,
        )


def cost_of(stage: MachineStage) -> Cost:
    """Ask an operator and the kernel."""
    text = stage.operator.get("metrics", "/metrics")
    assert text is not None
    verbs: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if sample.name == "novacron_api_requests_total":
                verb = sample.labels["verb"]
                verbs[verb] = verbs.get(verb, 0) + sample.value
    process = stage.operator.process
    assert process is not None
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    status = Path(f"/proc/{process.pid}/status").read_text()
    resident = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return Cost(
        int(sum(verbs.get(verb, 0) for verb in WRITES)),
        int(sum(verbs.get(verb, 0) for verb in READS)),
        (int(fields[11]) + int(fields[12])) / TICKS,
        int(resident.split()[1]) / 1024,
    )


def declare_many(stage: MachineStage, count: int) -> None:
    """Declare so many small Machines."""
    for number in range(count):
        stage.declare(f"m{number}")


def until_all_run(stage: MachineStage, count: int, seconds: float) -> float:
    """Wait until all of them are Running; return how long that took.

    The operator is asked, because to list hundreds again and again would keep the server busy.
    """
    begun = time.monotonic()
    while (running := _running(stage)) < count:
        late = time.monotonic() - begun > seconds
        assert not late, f"after {seconds:.0f} s {running} of {count} run; {stage.bed.summary()}"
        time.sleep(1)
    phases = [(each.get("status") or {}).get("phase") for each in stage.bed.items("machines")]
    assert phases.count("Running") == count
    return time.monotonic() - begun


def until_looked_at(stage: MachineStage, count: int) -> None:
    """Wait until the operator has had a round for as many Machines."""
    name = "kubevirt_operator_reconciliation_duration_seconds_count"
    stage.bed.wait("it does not look", lambda: _counted(stage, name) >= count, 300)


def _running(stage: MachineStage) -> int:
    return _counted(stage, "kubevirt_operator_machines_total", phase="Running")


def _counted(stage: MachineStage, name: str, **labels: str) -> int:
    text = stage.operator.get("metrics", "/metrics")
    assert text is not None
    return int(
        sum(
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == name and labels.items() <= sample.labels.items()
        )
    )
