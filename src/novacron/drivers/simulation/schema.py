"""The simulation file's tables: hosts, machines, what guests ran, and what nobody has any more.

The file keeps its own books: triggers count what machines hold of their host and give
addresses back, so no writer, not even a person with a SQLite shell, can get them wrong.
"""

__all__ = ["SCHEMA", "SCHEMA_VERSION", "SNAPSHOTS"]

# The number that SCHEMA leaves in the file; raise both together.
SCHEMA_VERSION = 3

# A machine is what it is (vcpus, power, …) and, while an operation is under way, also what it
# will be when that ends (next_…). Until then it holds the greater of both, so that neither a
# growing nor a shrinking machine can be promised away. Outside an operation both are the same.
# A machine that moves is on its host and holds as much of the one it goes to (to_host_id) until it
# is there. It takes its addresses along, which are of the network of the host that it was made on.
# Address slot 0 is the network's own and slot 1 its gateway, so machines begin at 2.
SCHEMA = """
CREATE TABLE IF NOT EXISTS hosts (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  held_vcpus INTEGER NOT NULL DEFAULT 0,
  held_memory_mib INTEGER NOT NULL DEFAULT 0,
  held_disk_mib INTEGER NOT NULL DEFAULT 0,
  next_slot INTEGER NOT NULL DEFAULT 2
);

CREATE TABLE IF NOT EXISTS free_slots (
  host_id INTEGER NOT NULL REFERENCES hosts (id),
  slot INTEGER NOT NULL,
  PRIMARY KEY (host_id, slot)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS machines (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  host_id INTEGER NOT NULL REFERENCES hosts (id),
  to_host_id INTEGER REFERENCES hosts (id),
  network_host_id INTEGER NOT NULL REFERENCES hosts (id),
  uid TEXT,
  namespace TEXT NOT NULL,
  name TEXT NOT NULL,
  power TEXT NOT NULL,
  vcpus INTEGER NOT NULL,
  memory_mib INTEGER NOT NULL,
  disk_mib INTEGER NOT NULL,
  next_power TEXT NOT NULL,
  next_vcpus INTEGER NOT NULL,
  next_memory_mib INTEGER NOT NULL,
  next_disk_mib INTEGER NOT NULL,
  addresses TEXT NOT NULL,
  slots TEXT NOT NULL,
  change TEXT,
  ends_us INTEGER,
  volumes TEXT NOT NULL DEFAULT '[]',
  volumes_mib INTEGER NOT NULL DEFAULT 0,
  held_vcpus INTEGER AS (max(vcpus, next_vcpus)),
  held_memory_mib INTEGER AS (max(memory_mib, next_memory_mib)),
  held_disk_mib INTEGER AS (max(disk_mib, next_disk_mib) + volumes_mib),
  UNIQUE (host_id, uid),
  CHECK ((change IS NULL) = (ends_us IS NULL)),
  CHECK ((to_host_id IS NULL) = (change IS NOT 'move'))
);

CREATE TABLE IF NOT EXISTS kept_volumes (
  host_id INTEGER NOT NULL REFERENCES hosts (id),
  namespace TEXT NOT NULL,
  id TEXT NOT NULL,
  size_mib INTEGER NOT NULL,
  storage_class TEXT,
  PRIMARY KEY (host_id, namespace, id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS changing_machines ON machines (ends_us) WHERE ends_us IS NOT NULL;

CREATE TRIGGER IF NOT EXISTS machine_made AFTER INSERT ON machines BEGIN
  UPDATE hosts SET
    held_vcpus = held_vcpus + new.held_vcpus,
    held_memory_mib = held_memory_mib + new.held_memory_mib,
    held_disk_mib = held_disk_mib + new.held_disk_mib
  WHERE id = new.host_id;
END;

CREATE TRIGGER IF NOT EXISTS machine_resized AFTER UPDATE ON machines
WHEN new.held_vcpus != old.held_vcpus
  OR new.held_memory_mib != old.held_memory_mib
  OR new.held_disk_mib != old.held_disk_mib
BEGIN
  UPDATE hosts SET
    held_vcpus = held_vcpus + new.held_vcpus - old.held_vcpus,
    held_memory_mib = held_memory_mib + new.held_memory_mib - old.held_memory_mib,
    held_disk_mib = held_disk_mib + new.held_disk_mib - old.held_disk_mib
  WHERE id = new.host_id;
END;

CREATE TRIGGER IF NOT EXISTS machine_sent AFTER UPDATE ON machines
WHEN old.to_host_id IS NULL AND new.to_host_id IS NOT NULL
BEGIN
  UPDATE hosts SET
    held_vcpus = held_vcpus + new.held_vcpus,
    held_memory_mib = held_memory_mib + new.held_memory_mib,
    held_disk_mib = held_disk_mib + new.held_disk_mib
  WHERE id = new.to_host_id;
END;

CREATE TRIGGER IF NOT EXISTS machine_moved AFTER UPDATE ON machines
WHEN old.to_host_id IS NOT NULL AND new.to_host_id IS NULL
BEGIN
  UPDATE hosts SET
    held_vcpus = held_vcpus - old.held_vcpus,
    held_memory_mib = held_memory_mib - old.held_memory_mib,
    held_disk_mib = held_disk_mib - old.held_disk_mib
  WHERE id = CASE WHEN new.host_id = old.to_host_id THEN old.host_id ELSE old.to_host_id END;
END;

CREATE TRIGGER IF NOT EXISTS machine_gone AFTER DELETE ON machines BEGIN
  UPDATE hosts SET
    held_vcpus = held_vcpus - old.held_vcpus,
    held_memory_mib = held_memory_mib - old.held_memory_mib,
    held_disk_mib = held_disk_mib - old.held_disk_mib
  WHERE id IN (old.host_id, old.to_host_id);
  INSERT INTO free_slots (host_id, slot)
    SELECT old.network_host_id, value FROM json_each(old.slots);
  INSERT OR REPLACE INTO kept_volumes (host_id, namespace, id, size_mib, storage_class)
    SELECT old.host_id, old.namespace, json_extract(gone.value, '$.id'),
      json_extract(gone.value, '$.size_mib'), json_extract(gone.value, '$.storage_class')
    FROM json_each(old.volumes) AS gone
    WHERE NOT EXISTS (
      SELECT 1 FROM machines, json_each(machines.volumes) AS other
      WHERE machines.host_id = old.host_id AND machines.namespace = old.namespace
        AND json_extract(other.value, '$.id') = json_extract(gone.value, '$.id')
    );
END;

CREATE TRIGGER IF NOT EXISTS volume_kept AFTER INSERT ON kept_volumes
WHEN new.storage_class IS NULL BEGIN
  UPDATE hosts SET held_disk_mib = held_disk_mib + new.size_mib WHERE id = new.host_id;
END;

CREATE TRIGGER IF NOT EXISTS volume_taken AFTER DELETE ON kept_volumes
WHEN old.storage_class IS NULL BEGIN
  UPDATE hosts SET held_disk_mib = held_disk_mib - old.size_mib WHERE id = old.host_id;
END;

CREATE TABLE IF NOT EXISTS runs (
  machine INTEGER NOT NULL,
  name TEXT NOT NULL,
  digest TEXT NOT NULL,
  code INTEGER NOT NULL,
  note TEXT NOT NULL,
  ends_us INTEGER NOT NULL,
  PRIMARY KEY (machine, name)
) WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS machine_stopped AFTER UPDATE OF power ON machines
WHEN new.power = 'Off' AND old.power != 'Off'
BEGIN
  DELETE FROM runs WHERE machine = new.number;
END;

CREATE TRIGGER IF NOT EXISTS machine_gone_with_runs AFTER DELETE ON machines BEGIN
  DELETE FROM runs WHERE machine = old.number;
END;

PRAGMA user_version = 3;
"""

# Made beside the rest, so that files from before there were snapshots can still be used.
SNAPSHOTS = """
CREATE TABLE IF NOT EXISTS snapshots (
  machine INTEGER NOT NULL REFERENCES machines (number),
  name TEXT NOT NULL,
  created_us INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL,
  memory INTEGER NOT NULL,
  restored TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (machine, name)
) WITHOUT ROWID;

CREATE TRIGGER IF NOT EXISTS snapshots_gone AFTER DELETE ON machines BEGIN
  DELETE FROM snapshots WHERE machine = old.number;
END;
"""
