"""What the API server can answer other than yes.

ApiError
├── Unreachable        no answer came; whether a write took effect is not known
├── Unauthorized 401   ├── Forbidden 403   ├── NotFound 404
├── Conflict 409       ├── AlreadyExists 409
├── Gone 410           the resource version is too old: list again
├── Invalid 400/422    the object itself is wrong
└── Overloaded 429/5xx come back later
LeaseLost              this process may not write any more
"""

from typing import Any

import orjson

__all__ = [
    "AlreadyExists",
    "ApiError",
    "Conflict",
    "Forbidden",
    "Gone",
    "Invalid",
    "LeaseLost",
    "NotFound",
    "Overloaded",
    "Unauthorized",
    "Unreachable",
    "error_for",
    "error_from",
]

LONGEST_MESSAGE = 500


class ApiError(Exception):
    """An answer of the API server that is not a success."""

    def __init__(
        self, message: str, *, code: int = 0, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.retry_after = retry_after


class Unreachable(ApiError):
    """No answer came. A write may or may not have taken effect."""


class Unauthorized(ApiError):
    """The credentials were not accepted."""


class Forbidden(ApiError):
    """The role does not allow this."""


class NotFound(ApiError):
    """There is no such object or resource."""


class Conflict(ApiError):
    """The object changed since it was read."""


class AlreadyExists(ApiError):
    """An object of that name is there already."""


class Gone(ApiError):
    """The resource version is too old to resume from."""


class Invalid(ApiError):
    """The object was refused for what it says."""


class Overloaded(ApiError):
    """The server asks for patience, or failed."""


class LeaseLost(Exception):
    """This process no longer holds the lease under which it may write."""


_BY_CODE: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: Overloaded,
}


def error_for(code: int, status: dict[str, Any], retry_after: float | None = None) -> ApiError:
    """Return the error for a Status object and its HTTP code."""
    reason = status.get("reason") or ""
    message = status.get("message") or f"the API server answered {code}"
    kind = Overloaded if code >= 500 else _BY_CODE.get(code, ApiError)
    if reason == "AlreadyExists":
        kind = AlreadyExists
    elif reason in ("Expired", "Gone"):
        kind = Gone
    return kind(message, code=code, reason=reason, retry_after=retry_after)


def error_from(code: int, body: bytes, retry_after: float | None) -> ApiError:
    """Return the error that an answer other than success stands for."""
    return error_for(code, _status(body), retry_after)


def _status(body: bytes) -> dict[str, Any]:
    # Something in between answers in its own words, and may call any of them JSON.
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {"message": body[:LONGEST_MESSAGE].decode(errors="replace").strip()}
    return status if isinstance(status, dict) else {}
