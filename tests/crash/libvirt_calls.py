"""Which calls of libvirt the knife cuts at: all of them, but for those that are named here.

So one that the driver begins to make tomorrow is cut at by itself, whatever it does; only a call
that is known to change nothing that outlives this process is left out.
"""

import inspect
from collections.abc import Iterator, Mapping
from types import MappingProxyType, ModuleType

import libvirt
import libvirt_qemu

__all__ = [
    "ONLY_READ",
    "SPARED",
    "calls_to_cut",
    "note_streams_that_read",
    "of_what_is_read",
]

# libvirt lets those make them too who may only look.
ONLY_READ = frozenset(
    {
        *("UUIDString", "XMLDesc", "baselineCPU", "blockInfo", "connect", "diskErrors"),
        *("getAllDomainStats", "getCapabilities", "getConnect", "getInfo", "getLibVersion"),
        *("getMemoryStats", "getVersion", "getXMLDesc", "info", "infoFlags", "isActive", "isAlive"),
        *("isCurrent", "jobInfo", "jobStats", "key", "listAllDevices", "listAllDomains"),
        *("listAllSnapshots", "listAllStoragePools", "listAllVolumes", "lookupByName"),
        *("lookupByUUIDString", "name", "networkLookupByName", "path", "snapshotListNames"),
        *("snapshotLookupByName", "snapshotNum", "state", "storagePoolLookupByName"),
        *("storagePoolLookupByTargetPath", "storageVolLookupByName", "storageVolLookupByPath"),
        *("vcpusFlags",),
    }
)
OF_THE_CONNECTION = "it is of the connection of this process, and ends with it"
# libvirt takes some of them for changes, and says so to those who may only look.
SPARED: Mapping[str, str] = MappingProxyType(
    {
        "agentSetResponseTimeout": "how long an agent is waited for is said before each question",
        "baselineHypervisorCPU": "it reads, by a QEMU that is started for it and ends",
        "download": "it reads, by a stream",
        "getDomainCapabilities": "it reads, by a QEMU that is started for it and ends",
        "interfaceAddresses": "it reads, also what a guest's agent says",
        "refresh": "libvirt sees what is there already",
        "recv": "it reads what a stream brings",
        "send": "there are many for one stream: it is cut at where it begins and where it ends",
        "abort": "it gives a stream up, as the end of this process does",
        **dict.fromkeys(
            (
                *("close", "domainEventDeregisterAny", "domainEventRegisterAny", "newStream"),
                "setKeepAlive",
            ),
            OF_THE_CONNECTION,
        ),
    }
)


def note_streams_that_read() -> None:
    """Have each stream by which something is read know that it is one."""
    download = libvirt.virStorageVol.download

    def noting(volume: libvirt.virStorageVol, stream: libvirt.virStream, *more: int) -> int:
        stream.only_reads = True
        started: int = download(volume, stream, *more)
        return started

    libvirt.virStorageVol.download = noting


def of_what_is_read(of: object = None, *_: object, **__: object) -> bool:
    """Say whether a call is of a stream that only reads, whose end is of no matter to anybody."""
    return getattr(of, "only_reads", False)


def calls_to_cut() -> Iterator[tuple[type | ModuleType, str]]:
    """Return every call that may change something, with whose it is."""
    kinds = (each for each in vars(libvirt).values() if inspect.isclass(each))
    for owner in (*(kind for kind in kinds if kind.__name__.startswith("vir")), libvirt_qemu):
        for name, call in vars(owner).items():
            known = name.startswith("_") or name in ONLY_READ or name in SPARED
            if inspect.isfunction(call) and not known:
                yield owner, name
