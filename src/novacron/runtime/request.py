"""What is asked of an API server, and how it looks on the wire."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, urlencode

from novacron.runtime.errors import Unauthorized

__all__ = ["Request"]


@dataclass(frozen=True, slots=True)
class Request:
    """One call of the API, in the words of its audit log."""

    verb: str
    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    content_type: str = "application/json"

    @property
    def writes(self) -> bool:
        """Say whether it changes something."""
        return self.method != "GET"

    def encode(self, prefix: str, headers: str, authorization: str | None) -> bytes:
        """Return the message: below a path prefix, with these header lines and more."""
        target = prefix + quote(self.path, safe="/:")
        if self.query:
            target = f"{target}?{urlencode(self.query)}"
        head = f"{self.method} {target} HTTP/1.1\r\n{headers}"
        if authorization is not None:
            if not authorization.isprintable():  # a line end would begin a header of its own
                raise Unauthorized("the credentials hold a character that no header may have")
            head += f"Authorization: {authorization}\r\n"
        if self.body is None:
            return (head + "Content-Length: 0\r\n\r\n" if self.writes else head + "\r\n").encode()
        head += f"Content-Type: {self.content_type}\r\nContent-Length: {len(self.body)}\r\n\r\n"
        return head.encode() + self.body
