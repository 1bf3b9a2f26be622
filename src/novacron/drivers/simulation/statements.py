"""The statements the driver runs over and over; SQLite prepares each of them once.

Positions (?1, ?2, …) are given where one value is used twice.
"""

MACHINE_COLUMNS = (
    "number, uid, power, vcpus, memory_mib, disk_mib, addresses, change, volumes, "
    "ends_us, "
    "namespace, name, next_vcpus, next_memory_mib, next_disk_mib, volumes_mib"
)
FIND_HOST = "SELECT id FROM hosts WHERE name = ?"
ADD_HOST = "INSERT INTO hosts (name) VALUES (?) ON CONFLICT DO NOTHING"
READ_HOST = (
    "SELECT held_vcpus, held_memory_mib, held_disk_mib, next_slot, "
    "EXISTS (SELECT 1 FROM free_slots WHERE host_id = hosts.id) FROM hosts WHERE id = ?"
)
FIND_MACHINE = f"SELECT {MACHINE_COLUMNS} FROM machines WHERE host_id = ? AND uid = ?"  # noqa: S608
LIST_MACHINES = (
    "SELECT number, uid, power, vcpus, memory_mib, disk_mib, addresses, change, volumes "
    "FROM machines WHERE host_id = ? AND uid IS NOT NULL"
)
ADD_MACHINE = (
    "INSERT INTO machines (host_id, network_host_id, uid, namespace, name, power, next_power, "
    "vcpus, memory_mib, disk_mib, next_vcpus, next_memory_mib, next_disk_mib, "
    "addresses, slots, change, ends_us, volumes, volumes_mib) "
    "VALUES (?1, ?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7, ?8, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
)
CHANGE_POWER = (
    "UPDATE machines SET next_power = ?2, next_vcpus = vcpus, next_memory_mib = memory_mib, "
    "next_disk_mib = disk_mib, change = ?3, ends_us = ?4 WHERE number = ?1"
)
CHANGE_SIZE = (
    "UPDATE machines SET next_power = power, next_vcpus = ?2, next_memory_mib = ?3, "
    "next_disk_mib = ?4, change = ?5, ends_us = ?6, volumes = ?7, volumes_mib = ?8 "
    "WHERE number = ?1"
)
CHANGE_NOTHING_YET = "UPDATE machines SET change = ?2, ends_us = ?3 WHERE number = ?1"
SEND = (
    "UPDATE machines SET next_power = power, next_vcpus = vcpus, next_memory_mib = memory_mib, "
    "next_disk_mib = disk_mib, to_host_id = ?2, change = 'move', ends_us = ?3 WHERE number = ?1"
)
STAY = "UPDATE machines SET to_host_id = NULL, change = NULL, ends_us = NULL WHERE number = ?1"
TARGET = "SELECT hosts.name FROM hosts, machines WHERE hosts.id = to_host_id AND number = ?"
ANYWHERE = "SELECT number FROM machines WHERE uid = ?"
ANY_DUE = "SELECT 1 FROM machines WHERE ends_us <= ? LIMIT 1"
REMOVE_DUE = "DELETE FROM machines WHERE ends_us <= ? AND change = 'delete'"
FINISH_DUE = (
    "UPDATE machines SET power = next_power, vcpus = next_vcpus, memory_mib = next_memory_mib, "
    "disk_mib = next_disk_mib, host_id = coalesce(to_host_id, host_id), to_host_id = NULL, "
    "change = NULL, ends_us = NULL WHERE ends_us <= ?"
)
FREE_SLOTS = "SELECT slot FROM free_slots WHERE host_id = ? ORDER BY slot LIMIT ?"
USE_FREE_SLOT = "DELETE FROM free_slots WHERE host_id = ? AND slot = ?"
USE_NEW_SLOTS = "UPDATE hosts SET next_slot = next_slot + ?2 WHERE id = ?1"
TAKE_KEPT = "DELETE FROM kept_volumes WHERE host_id = ? AND namespace = ? AND id = ?"
LIST_KEPT = (
    "SELECT namespace, id, size_mib, storage_class FROM kept_volumes WHERE host_id = ? "
    "ORDER BY namespace, id"
)
FIND_VOLUME = (
    "SELECT size_mib FROM kept_volumes WHERE host_id = ? AND namespace = ? AND id = ? UNION ALL "
    "SELECT json_extract(had.value, '$.size_mib') "
    "FROM machines, json_each(machines.volumes) AS had "
    "WHERE host_id = ? AND namespace = ? AND json_extract(had.value, '$.id') = ?"
)
WHO_HAS = (
    "SELECT machines.name FROM machines, json_each(machines.volumes) AS had "
    "WHERE host_id = ? AND namespace = ? AND json_extract(had.value, '$.id') = ? "
    "AND json_extract(had.value, '$.attached') AND uid != ? "
    "AND json_extract(had.value, '$.access') IS NOT ?"
)
