"""Reviews that the API server asks for: defaults, validation and conversion of objects.

Bytes in, bytes out: no network here, and no knowledge of any kind. Handlers are plain functions
on dictionaries, registered per resource.
"""

import base64
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

import orjson

from novacron.runtime.json_patch import diff
from novacron.runtime.resource import Object, Resource

__all__ = [
    "CONVERT_PATH",
    "Admission",
    "Convert",
    "Mutate",
    "Reply",
    "Validate",
    "Verdict",
    "Webhooks",
]

logger = logging.getLogger(__name__)

ADMISSION_API = "admission.k8s.io/v1"
CONVERSION_API = "apiextensions.k8s.io/v1"
CONVERT_PATH = "/convert"
ON_WRITE = ("CREATE", "UPDATE")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a validation found: problems refuse the request, warnings are shown to the user."""

    problems: Sequence[str] = ()
    warnings: Sequence[str] = ()


# Each gets the object, the old one (None on CREATE) and the operation. On DELETE both are the
# object that goes. A mutation may change its object in place; None means no change.
Mutate = Callable[[Object, Object | None, str], Object | None]
Validate = Callable[[Object, Object | None, str], Sequence[str] | Verdict]
# Gets an object of its own and the apiVersion wanted; metadata other than labels and annotations
# must stay as it is.
Convert = Callable[[Object, str], Object]


class Reply(NamedTuple):
    """An HTTP answer: JSON on success, one sentence otherwise."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Admission:
    """One registered admission handler."""

    resource: Resource
    path: str
    operations: tuple[str, ...]
    conditions: Mapping[str, str]
    review: Callable[[Object], Object] = field(repr=False)


@dataclass(slots=True)
class Webhooks:
    """The handlers of this operator, by resource; one of each sort per resource.

    Conditions are named CEL expressions; the API server makes the call only when all hold.
    """

    mutating: dict[str, Admission] = field(default_factory=dict)
    validating: dict[str, Admission] = field(default_factory=dict)
    converting: dict[str, Resource] = field(default_factory=dict)
    _admissions: dict[str, Admission] = field(default_factory=dict)
    _converters: dict[tuple[str, str], Convert] = field(default_factory=dict)

    def mutate(
        self,
        resource: Resource,
        handler: Mutate,
        *,
        operations: Sequence[str] = ON_WRITE,
        conditions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Let a function set defaults of a resource, at the resource's version."""
        path = f"/mutate/{resource}"
        operations = tuple(operations)
        hook = Admission(resource, path, operations, conditions, _mutation(handler))
        self._register(self.mutating, hook, "mutate")

    def validate(
        self,
        resource: Resource,
        handler: Validate,
        *,
        operations: Sequence[str] = ON_WRITE,
        conditions: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Let a function judge objects of a resource, at the resource's version."""
        path = f"/validate/{resource}"
        operations = tuple(operations)
        hook = Admission(resource, path, operations, conditions, _validation(handler))
        self._register(self.validating, hook, "validate")

    def convert(self, resource: Resource, converter: Convert) -> None:
        """Let a function convert a kind between its versions; the resource's own plays no part."""
        _only_once(self.converting, str(resource), "convert")
        self.converting[str(resource)] = resource
        self._converters[resource.group, resource.kind] = converter

    def answer(self, path: str, body: bytes) -> Reply:
        """Answer one review. Whatever goes wrong is an answer too, never an exception."""
        admission = self._admissions.get(path)
        if admission is None and path != CONVERT_PATH:
            return Reply(404, f"nothing is served at {path}".encode())
        try:
            review = orjson.loads(body)
            expected = ADMISSION_API if admission else CONVERSION_API
            if review["apiVersion"] != expected:
                return Reply(400, f"this is not a review of {expected}".encode())
            request = review["request"]
            uid = request["uid"]
        except (ValueError, KeyError, TypeError) as error:
            return Reply(400, f"this is not a review: {type(error).__name__}".encode())
        return _admit(admission, request, uid) if admission else self._converted(request, uid)

    def _register(self, place: dict[str, Admission], hook: Admission, sort: str) -> None:
        # Several groups have a kind of the same name, so names and paths hold the group too.
        _only_once(place, str(hook.resource), sort)
        place[str(hook.resource)] = self._admissions[hook.path] = hook

    def _converted(self, request: Object, uid: str) -> Reply:
        objects: list[Object] = []
        try:
            for obj in request["objects"]:
                objects.append(obj)
                objects[-1] = self._convert(obj, request["desiredAPIVersion"])
            result = {"status": "Success"}
            response = {"uid": uid, "result": result, "convertedObjects": objects}
            return _reply("ConversionReview", CONVERSION_API, response)
        except Exception as error:
            what = _title(objects[-1]) if objects else "objects"
            logger.exception("conversion of %s failed", what)
            result = {"status": "Failed", "message": f"cannot convert {what}: {_sentence(error)}"}
            return _reply("ConversionReview", CONVERSION_API, {"uid": uid, "result": result})

    def _convert(self, obj: Object, wanted: str) -> Object:
        group = obj["apiVersion"].rpartition("/")[0]
        converter = self._converters.get((group, obj["kind"]))
        if converter is None:
            raise LookupError(f"no conversion of {obj['kind']} in {group} is registered")
        converted = converter(obj, wanted)
        converted["apiVersion"] = wanted
        return converted


def _only_once(place: dict[str, Any], name: str, sort: str) -> None:
    if name in place:
        raise ValueError(f"{name} has a webhook to {sort} already")


def _admit(admission: Admission, request: Object, uid: str) -> Reply:
    try:
        response = admission.review(request)
    except Exception as error:
        what = _request_title(request)
        logger.exception("%s failed on %s", admission.path, what)
        # No denial: with an HTTP error the failure policy decides, as for an operator that is down.
        why = f"the operator failed on {what} with {type(error).__name__}; its log says more"
        return Reply(500, why.encode())
    response["uid"] = uid
    return _reply("AdmissionReview", ADMISSION_API, response)


def _mutation(handler: Mutate) -> Callable[[Object], Object]:
    def review(request: Object) -> Object:
        before, old = _objects(request)
        own = orjson.loads(orjson.dumps(before))  # so that a handler may change it in place
        after = handler(own, old, request["operation"])
        response: Object = {"allowed": True}
        if after is not None and (patch := diff(before, after)):
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(orjson.dumps(patch)).decode()
        return response

    return review


def _validation(handler: Validate) -> Callable[[Object], Object]:
    def review(request: Object) -> Object:
        obj, old = _objects(request)
        verdict = handler(obj, old, request["operation"])
        if not isinstance(verdict, Verdict):
            verdict = Verdict(verdict)
        response: Object = {"allowed": not verdict.problems}
        if verdict.warnings:
            response["warnings"] = list(verdict.warnings)
        if verdict.problems:
            message = f"{_request_title(request)} is refused: {'; '.join(verdict.problems)}"
            response["status"] = {"code": 422, "reason": "Invalid", "message": message}
        return response

    return review


def _objects(request: Object) -> tuple[Object, Object | None]:
    old: Object | None = request.get("oldObject")
    return request.get("object") or old or {}, old


def _reply(kind: str, api_version: str, response: Object) -> Reply:
    review = {"apiVersion": api_version, "kind": kind, "response": response}
    return Reply(200, orjson.dumps(review))


def _title(obj: Object) -> str:
    metadata = obj.get("metadata") or {}
    return _named(obj.get("kind", "an object"), metadata.get("namespace"), metadata.get("name"))


def _request_title(request: Object) -> str:
    kind = (request.get("kind") or {}).get("kind", "object")
    return _named(kind, request.get("namespace"), request.get("name"))


def _named(kind: str, namespace: str | None, name: str | None) -> str:
    if not name:
        return f"{kind} in {namespace}" if namespace else kind
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _sentence(error: Exception) -> str:
    return str(error.args[0]) if error.args else type(error).__name__
