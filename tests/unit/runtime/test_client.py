"""The client against a server on loopback that answers as told."""

import orjson
import pytest
from aiohttp import web

from loopback import answering, connection_to
from novacron.runtime.client import Client, Request
from novacron.runtime.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Overloaded,
    Unreachable,
)
from novacron.runtime.resource import EVENTS, NAMESPACES
from scripted import WIDGET, WIDGETS, Server, client_of, said


async def test_each_verb_asks_what_the_api_documents() -> None:
    """Paths, methods and content types are the contract with the server."""
    server = Server()
    async with client_of(server) as client:
        await client.get(WIDGETS, "a", "red")
        await client.get(NAMESPACES, "red")
        await client.create(WIDGETS, WIDGET)
        await client.create(EVENTS, WIDGET)
        await client.replace(WIDGETS, WIDGET, subresource="status")
        await client.patch(WIDGETS, "a", {"status": {}}, "red", subresource="status")
        await client.apply(WIDGETS, WIDGET)
        await client.delete(WIDGETS, "a", "red", uid="u-1")
        await client.delete(WIDGETS, "a", "red")
    assert [(ask.method, ask.path_qs, ask.content_type) for ask in server.asked] == [
        ("GET", "/apis/example.com/v1/namespaces/red/widgets/a", "application/octet-stream"),
        ("GET", "/api/v1/namespaces/red", "application/octet-stream"),
        ("POST", "/apis/example.com/v1/namespaces/red/widgets", "application/json"),
        ("POST", "/api/v1/namespaces/red/events", "application/json"),
        ("PUT", "/apis/example.com/v1/namespaces/red/widgets/a/status", "application/json"),
        (
            "PATCH",
            "/apis/example.com/v1/namespaces/red/widgets/a/status",
            "application/merge-patch+json",
        ),
        (
            "PATCH",
            "/apis/example.com/v1/namespaces/red/widgets/a?fieldManager=novacron&force=true",
            "application/apply-patch+yaml",
        ),
        ("DELETE", "/apis/example.com/v1/namespaces/red/widgets/a", "application/json"),
        ("DELETE", "/apis/example.com/v1/namespaces/red/widgets/a", "application/octet-stream"),
    ]
    assert orjson.loads(server.bodies[7]) == {"preconditions": {"uid": "u-1"}}
    assert {ask.headers["User-Agent"] for ask in server.asked} == {"novacron"}


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../secrets/x", "a?x=1", "a%2Fb", "a#b"])
async def test_a_name_that_would_address_something_else_is_refused(name: str) -> None:
    """An empty name would delete the whole collection."""
    server = Server()
    async with client_of(server) as client:
        with pytest.raises(ValueError, match="cannot be the name"):
            await client.delete(WIDGETS, name, "red")
        with pytest.raises(ValueError, match="cannot be the name"):
            await client.get(WIDGETS, name, "red")
    assert server.asked == []


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (400, "BadRequest", Invalid),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "Conflict", Conflict),
        (409, "AlreadyExists", AlreadyExists),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (302, "", ApiError),
        (418, "", ApiError),
    ],
)
async def test_refusals_are_told_apart_and_not_repeated(
    code: int, reason: str, kind: type[ApiError]
) -> None:
    """What the server will say again needs another remedy than patience."""
    server = Server(said(code, reason=reason))
    async with client_of(server) as client:
        with pytest.raises(kind) as caught:
            await client.get(WIDGETS, "a", "red")
    assert type(caught.value) is kind
    assert (caught.value.message, caught.value.code) == (f"said {code}", code)
    assert len(server.asked) == 1


async def test_a_429_is_repeated_after_the_time_it_names_even_for_a_write() -> None:
    """The server refused it unseen: it cannot have taken effect."""
    server = Server(said(429, after=3), said(429, after=3))
    async with client_of(server) as client:
        await client.patch(WIDGETS, "a", {}, "red")
        assert client.observer == [("patch", 429), ("patch", 429), ("patch", 200)]
        assert client.sleep == [pytest.approx(3.15, abs=0.16)] * 2


async def test_a_503_with_retry_after_is_repeated_for_a_write() -> None:
    """The API server answers so while it starts."""
    server = Server(said(503, after=1))
    async with client_of(server) as client:
        await client.patch(WIDGETS, "a", {}, "red")
    assert len(server.asked) == 2


@pytest.mark.parametrize("answer", [500, 502, 503, 504, None])
async def test_a_write_that_may_have_taken_effect_is_not_repeated(answer: int | None) -> None:
    """A second create could make a second machine; the caller looks first."""
    server = Server(None if answer is None else said(answer))
    async with client_of(server) as client:
        with pytest.raises(Unreachable if answer is None else Overloaded):
            await client.create(WIDGETS, WIDGET)
        assert client.observer == [("create", answer or 0)]
    assert len(server.asked) == 1


@pytest.mark.parametrize("answer", [429, 500, 502, 503, 504])
async def test_a_read_is_repeated_with_growing_pauses(answer: int) -> None:
    """Reading twice does no harm."""
    server = Server(said(answer), said(answer), said(answer))
    async with client_of(server) as client:
        await client.get(WIDGETS, "a", "red")
        first, second, third = client.sleep  # type: ignore[misc]
        assert first < 0.21 < second + 0.2
        assert 0.4 <= third <= 0.8
    assert len(server.asked) == 4


async def test_a_read_without_an_answer_is_repeated() -> None:
    """A connection that breaks is the most ordinary fault of all."""
    server = Server(None, None, None)
    async with client_of(server) as client:
        await client.get(WIDGETS, "a", "red")
    assert len(server.asked) >= 4


async def test_patience_ends() -> None:
    """A server that only ever says 500 is the caller's problem after some attempts."""
    server = Server(*(said(500) for _ in range(20)))
    async with client_of(server) as client:
        with pytest.raises(Overloaded):
            await client.get(WIDGETS, "a", "red")
    assert len(server.asked) == 6


async def test_a_very_long_retry_after_is_cut_short() -> None:
    """A worker asleep for an hour is a worker lost."""
    server = Server(said(429, after=3600))
    async with client_of(server) as client:
        await client.get(WIDGETS, "a", "red")
        assert client.sleep[0] <= 33  # type: ignore[index]


async def test_nobody_listens() -> None:
    """The message says where it looked, and nothing was repeated for a write."""
    async with answering(Server()) as url:
        pass
    async with Client(connection_to(url)) as client:
        with pytest.raises(Unreachable, match=url):
            await client.create(WIDGETS, WIDGET)


async def test_an_answer_that_is_no_json_is_an_api_error() -> None:
    """A load balancer in between speaks HTML; whoever follows a resource must live through it."""
    page = "<html>" + "x" * 10_000
    server = Server(
        web.Response(status=404, text=page, content_type="text/html"),
        web.Response(status=404, text="{broken", content_type="application/json"),
        web.Response(status=404, text='["odd"]', content_type="application/json"),
        web.Response(status=200, text=page, content_type="text/html"),
    )
    async with client_of(server) as client:
        for kind in (NotFound, NotFound, NotFound, ApiError):
            with pytest.raises(kind) as caught:
                await client.get(WIDGETS, "a", "red")
            assert len(caught.value.message) < 600


def lines(*events: object) -> web.Response:
    """Return a watch that ends after these events."""
    return web.Response(
        body=b"".join(orjson.dumps(event) + b"\n" for event in events),
        content_type="application/json",
    )


async def test_a_watch_gives_its_events_and_ends_with_the_connection() -> None:
    """Bookmarks are events too: they move the point to resume from."""
    event = {"type": "ADDED", "object": {"metadata": {"name": "x" * 2_000_000}}}
    bookmark = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "9"}}}
    server = Server(lines(event, bookmark))
    async with client_of(server) as client:
        events = [event async for event in client.watch(WIDGETS, "red", since="4", seconds=7)]
    assert [event.type for event in events] == ["ADDED", "BOOKMARK"]
    assert dict(server.asked[0].query) == {
        "watch": "1",
        "allowWatchBookmarks": "true",
        "resourceVersion": "4",
        "timeoutSeconds": "7",
    }


async def test_an_error_within_a_watch_is_raised() -> None:
    """The server says 410 there, after it said 200."""
    error = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    async with client_of(Server(lines(error))) as client:
        with pytest.raises(Gone):
            async for _ in client.watch(WIDGETS, since="4", seconds=7):
                pass


@pytest.mark.parametrize("broken", [b'{"type": "ADDED", "obj', b"not json\n"])
async def test_a_line_that_is_cut_or_broken_ends_the_watch(broken: bytes) -> None:
    """Half an object is no news."""
    answer = web.Response(body=broken, content_type="application/json")
    async with client_of(Server(answer)) as client:
        with pytest.raises(Unreachable):
            async for _ in client.watch(WIDGETS, since="4", seconds=7):
                pass


async def test_a_list_is_read_page_by_page() -> None:
    """Twenty thousand objects in one answer would hurt both ends."""

    async def serve(request: web.Request) -> web.StreamResponse:
        start, limit = int(request.query.get("continue", 0)), int(request.query["limit"])
        items = [{"metadata": {"name": f"n{i}"}} for i in range(start, min(start + limit, 5))]
        more = str(start + limit) if start + limit < 5 else ""
        return web.json_response(
            {"metadata": {"resourceVersion": "7", "continue": more}, "items": items}
        )

    async with answering(serve) as url, Client(connection_to(url)) as client:
        pages = [page async for page in client.pages(WIDGETS, limit=2)]
        everything = await client.list(WIDGETS)
    assert [len(page.items) for page in pages] == [2, 2, 1]
    assert {page.resource_version for page in pages} == {"7"}
    assert everything[0] == {
        "metadata": {"name": "n0"},
        "apiVersion": "example.com/v1",
        "kind": "Widget",
    }


async def test_an_empty_list_is_one_request() -> None:
    """The server says null for no items."""
    empty = web.json_response({"metadata": {"resourceVersion": "7"}, "items": None})
    server = Server(empty)
    async with client_of(server) as client:
        assert await client.list(WIDGETS) == []
    assert len(server.asked) == 1


async def test_a_client_that_was_not_entered_says_so() -> None:
    """A programming error must not look like a network fault."""
    client = Client(connection_to("http://127.0.0.1:1"))
    with pytest.raises(RuntimeError, match="entered"):
        await client.send(Request("get", "GET", "/version"))
