"""How much of an image is taken: its bytes, what they claim to be, and what they unfold to."""

from dataclasses import dataclass

from novacron.core.errors import Rejected

__all__ = ["Limits"]

GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that an image from anybody must keep.

    ``image_bytes`` of a file as it comes, ``disk_bytes`` of the disk that it says it is. A file
    that is converted may grow ``expansion`` times, or up to ``small_bytes`` if it is small.
    """

    image_bytes: int = 64 * GIB
    disk_bytes: int = 2048 * GIB
    expansion: int = 20
    small_bytes: int = GIB

    def require_bytes(self, shown: str, count: int) -> None:
        """Refuse an image of more bytes than are taken."""
        if count > self.image_bytes:
            raise Rejected(
                f"image {shown} is larger than the {self.image_bytes // GIB} GiB that "
                "--image-max-size of the operator allows",
                reason="ImageTooLarge",
            )

    def require_size(self, shown: str, virtual_bytes: int) -> None:
        """Refuse an image of a disk that nobody has."""
        if virtual_bytes > self.disk_bytes:
            raise Rejected(
                f"image {shown} is of a disk of {-(-virtual_bytes // GIB)} GiB; more than "
                f"{self.disk_bytes // GIB} GiB is not taken",
                reason="ImageTooLarge",
            )

    def unfolded_bytes(self, count: int) -> int:
        """Return how many bytes may come out of a conversion of so many."""
        return min(max(count * self.expansion, self.small_bytes), self.image_bytes)
