"""Finds the images that machines ask for: in the catalogue, on the web, in claims."""

import asyncio
import base64
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from novacron.app.claimed_images import ClaimedImages
from novacron.app.settings import Settings
from novacron.controllers.catalogue import catalogue_of
from novacron.core.errors import Rejected, Unreachable
from novacron.core.machine import MachinePlan
from novacron.images import (
    Bucket,
    Catalogue,
    Entry,
    FileBytes,
    HostFile,
    Located,
    Reach,
    WebBytes,
    s3_bytes,
)
from novacron.runtime.client import Client
from novacron.runtime.errors import ApiError, NotFound
from novacron.runtime.resource import Resource

__all__ = ["ImageFinder", "secret_data"]

SECRETS = Resource("", "v1", "secrets", "Secret")
# Many machines are made at once; the catalogue is read for all of them.
FRESH_SECONDS = 2.0


@dataclass(slots=True)
class ImageFinder:
    """Satisfies ``images.Locate`` for the machines of one host.

    What the cluster says is read when it is needed, so a change counts at once.
    """

    settings: Settings
    client: Client
    node: str | None = None
    _catalogue: tuple[float, Catalogue] | None = field(default=None, repr=False)

    async def __call__(self, plan: MachinePlan) -> Located:
        """Find the image of a plan."""
        found = await self._find(plan.image, plan)
        if plan.checksum in (None, found.checksum):
            return found
        return replace(found, checksum=plan.checksum, vouched=False)

    async def _find(self, source: str, plan: MachinePlan) -> Located:
        scheme, _, rest = source.partition("://")
        match scheme:
            case "builtin":
                return Located(source, self._builtin(rest))
            case "http" | "https":
                return Located(source, WebBytes(source, self._reach))
            case "s3":
                return Located(source, s3_bytes(source, await self._bucket(), self._reach))
            case "marketplace":
                return await self._marketed(source, await self._entry(rest), plan)
            case "pvc":
                claims = ClaimedImages(self.settings, self.client, self.node)
                return Located(source, await claims.find(source, plan.ref.namespace))
            case "file":
                return Located(source, self._host_file(source, rest, plan.ref.namespace))
        raise Rejected(f"images from {scheme}:// are not known", reason="ImageNotFound")

    async def _entry(self, name: str) -> Entry:
        """Return what a name of the catalogue stands for; one that is not known may be new."""
        now = asyncio.get_running_loop().time()
        read_at, catalogue = self._catalogue or (0.0, Catalogue({}))
        if name not in catalogue.entries or now - read_at > FRESH_SECONDS:
            extension, namespace = self.settings.image_catalogue, self.settings.namespace
            catalogue = await catalogue_of(self.client, extension, namespace)
            self._catalogue = (now, catalogue)
        return catalogue.find(name)

    @property
    def _reach(self) -> Reach:
        return Reach(self.settings.image_allow, self.settings.image_deny)

    def _builtin(self, name: str) -> FileBytes:
        directory = self.settings.images_directory
        path: Path = directory / f"{name}.qcow2"
        if path.parent != directory or not path.is_file():
            raise Rejected(f"no built-in image is called {name}", reason="ImageNotFound")
        return FileBytes(path, f"builtin://{name}")

    async def _marketed(self, source: str, entry: Entry, plan: MachinePlan) -> Located:
        found = await self._find(entry.url, plan)
        place = found.place
        if isinstance(place, WebBytes):
            place = replace(place, trusted=True)
        file = entry.checksum_file
        return Located(
            source,
            place,
            entry.checksum,
            WebBytes(file, self._reach, trusted=True) if file else None,
            entry.minimum,
            vouched=True,
        )

    async def _bucket(self) -> Bucket:
        name = self.settings.image_s3_secret
        try:
            data = await secret_data(self.client, name, self.settings.namespace)
        except Rejected:
            data = {}  # anonymously, then
        return Bucket.of(data)

    def _host_file(self, source: str, path: str, namespace: str) -> HostFile:
        if namespace not in self.settings.image_file_namespaces:
            raise Rejected(
                f"image {source}: machines in namespace {namespace} may not have files of their "
                "host; an administrator can allow it with --image-file-namespaces of the operator",
                reason="SourceDenied",
            )
        directory, _, name = path.rpartition("/")
        if not name or ".." in path.split("/"):
            raise Rejected(f"image {source} is no plain path of a file", reason="ImageNotFound")
        return HostFile(directory or "/", name, source)


async def secret_data(client: Client, name: str, namespace: str) -> Mapping[str, bytes]:
    """Return what a Secret holds."""
    try:
        secret = await client.get(SECRETS, name, namespace)
    except NotFound as error:
        raise Rejected(
            f"there is no Secret {name} in namespace {namespace}", reason="CredentialsMissing"
        ) from error
    except ApiError as error:
        raise Unreachable(f"Secret {name} cannot be read: {error.message}") from error
    return {key: base64.b64decode(text) for key, text in (secret.get("data") or {}).items()}
