"""Checks a simulation file's books against its machines, by a connection of its own."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

HELD = (
    "SELECT hosts.id, next_slot, (hosts.held_vcpus, hosts.held_memory_mib, hosts.held_disk_mib)"
    " = (SELECT coalesce(sum(max(vcpus, next_vcpus)), 0),"
    " coalesce(sum(max(memory_mib, next_memory_mib)), 0),"
    " coalesce(sum(max(disk_mib, next_disk_mib)), 0) FROM machines WHERE host_id = hosts.id)"
    " FROM hosts"
)


def check_books(path: Path) -> None:
    """Say whether each host holds what its machines do and every address is somebody's or free."""
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        for host, next_slot, held_is_right in file.execute(HELD).fetchall():
            assert held_is_right
            given = file.execute("SELECT slots FROM machines WHERE host_id = ?", (host,))
            slots = [slot for (text,) in given for slot in json.loads(text)]
            free = file.execute("SELECT slot FROM free_slots WHERE host_id = ?", (host,))
            slots += [slot for (slot,) in free]
            assert sorted(slots) == list(range(2, next_slot))
