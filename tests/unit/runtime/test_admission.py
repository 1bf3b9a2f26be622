"""Answers to the API server's reviews, without a network."""

import base64
import logging
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from novacron.runtime.admission import Validate, Verdict, Webhooks
from novacron.runtime.resource import Object, Resource

WIDGETS = Resource("tests.novacron.io", "v1", "widgets", "Widget")
OTHER_WIDGETS = Resource("other.novacron.io", "v1", "widgets", "Widget")


def admission_review(
    obj: Object | None, old: Object | None = None, operation: str = "CREATE"
) -> bytes:
    request = {
        "uid": "u-1",
        "kind": {"group": WIDGETS.group, "version": "v1", "kind": "Widget"},
        "namespace": "default",
        "name": "one",
        "operation": operation,
        "object": obj,
        "oldObject": old,
    }
    body = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return orjson.dumps(body)


def conversion_review(objects: list[Object], wanted: str) -> bytes:
    request = {"uid": "u-2", "desiredAPIVersion": wanted, "objects": objects}
    body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
    return orjson.dumps(body | {"request": request})


def answer(webhooks: Webhooks, path: str, body: bytes) -> Any:
    reply = webhooks.answer(path, body)
    assert reply.status == 200, reply.body
    return orjson.loads(reply.body)["response"]


def refuse(*problems: str, warnings: Sequence[str] = ()) -> Validate:
    def handler(obj: Object, old: Object | None, operation: str) -> Verdict:
        return Verdict(problems, warnings)

    return handler


def test_a_mutation_is_answered_by_a_patch_even_when_made_in_place() -> None:
    """A handler that changes its argument is natural Python; its change must not be lost."""

    def set_size(obj: Object, old: Object | None, operation: str) -> Object:
        obj["spec"].setdefault("size", 3)
        return obj

    webhooks = Webhooks()
    webhooks.mutate(WIDGETS, set_size)
    path = "/mutate/widgets.tests.novacron.io"
    response = answer(webhooks, path, admission_review({"spec": {}}))
    patch = orjson.loads(base64.b64decode(response["patch"]))
    assert patch == [{"op": "add", "path": "/spec/size", "value": 3}]
    assert (response["uid"], response["allowed"]) == ("u-1", True)
    assert "patch" not in answer(webhooks, path, admission_review({"spec": {"size": 1}}))


def test_all_problems_are_named_in_one_sentence_with_the_object() -> None:
    """A user who fixes one problem at a time runs kubectl once per problem."""
    webhooks = Webhooks()
    webhooks.validate(WIDGETS, refuse("size is too small", "colour is odd"))
    path = "/validate/widgets.tests.novacron.io"
    response = answer(webhooks, path, admission_review({"spec": {}}))
    message = "Widget default/one is refused: size is too small; colour is odd"
    assert response["allowed"] is False
    assert response["status"] == {"code": 422, "reason": "Invalid", "message": message}


def test_warnings_do_not_refuse() -> None:
    """Deprecated settings keep working while the user is told."""
    webhooks = Webhooks()
    webhooks.validate(WIDGETS, refuse(warnings=["size is old"]))
    path = "/validate/widgets.tests.novacron.io"
    response = answer(webhooks, path, admission_review({"spec": {}}))
    assert response == {"uid": "u-1", "allowed": True, "warnings": ["size is old"]}


def test_on_delete_the_handler_sees_the_object_that_goes() -> None:
    """The API server sends no new object then; handlers should not have to know."""
    seen: list[Any] = []

    def look(obj: Object, old: Object | None, operation: str) -> list[str]:
        seen.append((obj, old, operation))
        return []

    webhooks = Webhooks()
    webhooks.validate(WIDGETS, look, operations=["DELETE"])
    path = "/validate/widgets.tests.novacron.io"
    gone = {"spec": {"size": 1}}
    answer(webhooks, path, admission_review(None, gone, "DELETE"))
    assert seen == [(gone, gone, "DELETE")]


def test_kinds_of_the_same_name_in_two_groups_have_their_own_webhooks() -> None:
    """Five families share kinds such as VirtualMachine."""
    webhooks = Webhooks()
    webhooks.validate(WIDGETS, refuse("first"))
    webhooks.validate(OTHER_WIDGETS, refuse())
    body = admission_review({"spec": {}})
    assert not answer(webhooks, "/validate/widgets.tests.novacron.io", body)["allowed"]
    assert answer(webhooks, "/validate/widgets.other.novacron.io", body)["allowed"]
    with pytest.raises(ValueError, match=r"widgets.tests.novacron.io has a webhook to validate"):
        webhooks.validate(WIDGETS, refuse())


def test_a_handler_that_raises_is_an_http_error_and_a_logged_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """So the failure policy decides: a broken default is skipped, a broken validation refuses."""

    def broken(obj: Object, old: Object | None, operation: str) -> list[str]:
        raise KeyError("password=secret")

    webhooks = Webhooks()
    webhooks.validate(WIDGETS, broken)
    reply = webhooks.answer("/validate/widgets.tests.novacron.io", admission_review({"spec": {}}))
    sentence = b"the operator failed on Widget default/one with KeyError; its log says more"
    assert reply == (500, sentence)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/validate/gadgets.tests.novacron.io", b"{}", 404),
        ("/validate/widgets.tests.novacron.io", b"", 400),
        ("/validate/widgets.tests.novacron.io", b"[]", 400),
        ("/validate/widgets.tests.novacron.io", b'{"apiVersion":"admission.k8s.io/v1"}', 400),
        ("/validate/widgets.tests.novacron.io", b'{"apiVersion":"v9","request":{}}', 400),
        ("/convert", b'{"apiVersion":"admission.k8s.io/v1"}', 400),
    ],
)
def test_what_is_not_a_review_is_refused(path: str, body: bytes, status: int) -> None:
    """Anybody in the cluster can reach the port."""
    webhooks = Webhooks()
    webhooks.validate(WIDGETS, refuse())
    assert webhooks.answer(path, body).status == status


def convert(obj: Object, wanted: str) -> Object:
    if "size" not in obj["spec"]:
        raise ValueError("it has no size")
    return {**obj, "spec": {"width": obj["spec"]["size"]}}


def widget(name: str, **spec: Any) -> Object:
    metadata = {"namespace": "default", "name": name}
    return {"apiVersion": "tests.novacron.io/v1", "kind": "Widget", "metadata": metadata} | {
        "spec": spec
    }


def test_objects_are_converted_in_their_order() -> None:
    """The API server puts them back by position."""
    webhooks = Webhooks()
    webhooks.convert(WIDGETS, convert)
    body = conversion_review([widget("a", size=1), widget("b", size=2)], "tests.novacron.io/v2")
    response = answer(webhooks, "/convert", body)
    assert response["result"] == {"status": "Success"}
    assert [each["spec"]["width"] for each in response["convertedObjects"]] == [1, 2]
    assert {each["apiVersion"] for each in response["convertedObjects"]} == {"tests.novacron.io/v2"}


def test_a_failed_conversion_says_which_object_and_why() -> None:
    """A list of thousands fails because of one; the message must lead to it."""
    webhooks = Webhooks()
    webhooks.convert(WIDGETS, convert)
    body = conversion_review([widget("a", size=1), widget("b")], "tests.novacron.io/v2")
    response = answer(webhooks, "/convert", body)
    message = "cannot convert Widget default/b: it has no size"
    assert response == {"uid": "u-2", "result": {"status": "Failed", "message": message}}


def test_a_kind_without_a_converter_is_named() -> None:
    """A CRD that points here by mistake must not look like a broken operator."""
    body = conversion_review([widget("a", size=1)], "tests.novacron.io/v2")
    response = answer(Webhooks(), "/convert", body)
    assert "no conversion of Widget in tests.novacron.io" in response["result"]["message"]
