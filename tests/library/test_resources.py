"""Documents: read once, found by their text, and removed completely when deleted."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import holdfast
from holdfast import Actor, ActorKind, Memory, Trust
from holdfast.domain.resources import ResourceAdded
from holdfast.errors import (
    AccessDenied,
    IdempotencyConflict,
    InvalidCursor,
    InvalidDocument,
    InvalidInput,
    InvalidText,
    NotFound,
)
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.stores.postgres import schema as postgres_schema
from holdfast.stores.sqlite import schema as sqlite_schema

HERONS = "Herons stand in the reeds and wait.\n\n" * 60 + "A heron eats fish."


def test_what_a_document_says_is_found(memory: Memory) -> None:
    added = memory.add_resource(HERONS, name="herons.txt", subject="ana")
    resource = added.resource
    assert not added.reused
    assert (resource.name, resource.media_type, resource.external_uri) == ("herons.txt", "text/plain", None)
    assert (resource.sha256, resource.bytes) == (hashlib.sha256(HERONS.encode()).hexdigest(), len(HERONS.encode()))
    assert resource.chunks > 1
    assert resource.uri == f"resource:ana:{resource.id}"
    assert resource.id.startswith("r_")
    hit = memory.search("what does a heron eat", subject="ana", planes="resource")[0]
    assert "eats fish" in hit.text
    assert (hit.plane, hit.trust, hit.source) == ("resource", Trust.LOW, resource.uri)
    assert hit.metadata == {
        "resource_id": resource.id, "resource_uri": resource.uri, "resource_name": "herons.txt",
        "chunk": str(resource.chunks - 1),
    }  # fmt: skip
    chunks = memory.list(source=resource.uri, subject="ana", limit=1_000).items
    assert [chunk.metadata["chunk"] for chunk in chunks][::-1] == [str(number) for number in range(resource.chunks)]


def test_where_it_came_from_is_shown_with_it(memory: Memory) -> None:
    added = memory.add_resource(b"Reeds.", name="r.txt", external_uri="https://example.org/reeds")
    assert added.resource.external_uri == "https://example.org/reeds"
    assert added.resource.uri == f"resource:shared:{added.resource.id}"
    assert memory.search("reeds")[0].metadata["resource_uri"] == "https://example.org/reeds"


def test_a_file_is_read_by_its_path_and_named_like_it(memory: Memory, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Birds\n\nThe heron is grey.\n")
    resource = memory.add_resource(path, agent="bot").resource
    assert (resource.name, resource.media_type) == ("notes.md", "text/markdown")
    assert resource.uri == f"resource:bot:{resource.id}"
    assert "The heron is grey." in memory.search("heron", agent="bot")[0].text


def test_the_same_file_in_the_same_scope_is_kept_once(memory: Memory) -> None:
    first = memory.add_resource(HERONS, name="a.txt", subject="ana").resource
    again = memory.add_resource(HERONS, name="b.txt", subject="ana")
    assert (again.resource, again.reused) == (first, True)
    for other in ({"subject": "bob"}, {"subject": "ana", "app": "mail"}, {"subject": "ana", "space": "there"}, {}):
        assert not memory.add_resource(HERONS, name="a.txt", **other).reused
    assert not memory.add_resource(HERONS + "!", subject="ana").reused
    assert memory.stats(subject="ana").resources == 4  # includes the shared one


def test_the_same_text_under_another_address_is_another_resource(memory: Memory) -> None:
    addresses = ["https://example.org/a", "https://example.org/b", None]
    made = [memory.add_resource("Reeds.", name="r", external_uri=address).resource for address in addresses]
    assert [resource.external_uri for resource in made] == addresses
    assert len({resource.id for resource in made}) == 3
    for resource in made:
        again = memory.add_resource("Reeds.", name="r", external_uri=resource.external_uri)
        assert (again.resource, again.reused) == (resource, True)


@pytest.mark.parametrize("gone", ["one", "all"])
def test_a_file_whose_chunks_were_forgotten_is_kept_anew(memory: Memory, gone: str) -> None:
    first = memory.add_resource(HERONS, name="a.txt", subject="ana").resource
    other = memory.add_resource(HERONS, name="a.txt", subject="bob").resource
    chunks = memory.list(source=first.uri, subject="ana", limit=1_000).items
    for chunk in chunks[: 1 if gone == "one" else None]:
        memory.forget(chunk.id, subject="ana")
    again = memory.add_resource(HERONS, name="a.txt", subject="ana")
    assert (again.reused, again.resource.chunks) == (False, first.chunks)
    assert memory.resources(subject="ana").items == (again.resource,)
    assert memory.stats(subject="ana").memories == first.chunks
    assert "eats fish" in memory.search("what does a heron eat", subject="ana")[0].text
    assert memory.list(source=first.uri, subject="ana").items == ()
    assert memory.resource(other.id, subject="bob") == other
    assert memory.verify().ok
    assert memory.add_resource(HERONS, name="a.txt", subject="ana") == ResourceAdded(again.resource, reused=True)


def test_a_file_whose_chunk_was_corrected_is_still_whole(memory: Memory) -> None:
    first = memory.add_resource("Reeds are blue.", subject="ana").resource
    (chunk,) = memory.list(source=first.uri, subject="ana").items
    memory.correct(chunk.id, "Reeds are green.", subject="ana")
    assert memory.add_resource("Reeds are blue.", subject="ana").reused
    assert memory.search("reeds", subject="ana")[0].text == "Reeds are green."


@pytest.mark.parametrize(
    "address",
    ["javascript:alert(1)", " JavaScript:alert(1)", "java\tscript:alert(1)", "data:text/html,x", "file:///etc/passwd",
     "vbscript:x", "\x01javascript:x", "blob:https://example.org/x"],
)  # fmt: skip
def test_an_address_that_would_do_something_is_refused(memory: Memory, address: str) -> None:
    with pytest.raises(InvalidInput, match=r"external_uri: \S+: is not a safe scheme") as refused:
        memory.add_resource("Reeds.", external_uri=address)
    assert refused.value.field == "external_uri"
    assert memory.resources().items == ()


@pytest.mark.parametrize(
    "address", ["http://a", "HTTPS://a/b?c=data:x", "urn:isbn:1", "doc-7", "notes: file:x", "data"]
)
def test_an_address_that_is_only_a_name_is_kept(memory: Memory, address: str) -> None:
    assert memory.add_resource("Reeds.", external_uri=address).resource.external_uri == address


def test_resources_are_listed_newest_first_page_by_page(memory: Memory) -> None:
    made = [memory.add_resource(f"Number {number}.", subject="ana").resource for number in range(7)]
    memory.add_resource("Somebody else's.", subject="bob")
    found: list[Any] = []
    cursor = None
    while True:
        page = memory.resources(subject="ana", limit=3, cursor=cursor)
        found += page.items
        if (cursor := page.next_cursor) is None:
            break
    assert found == made[::-1]
    with pytest.raises(InvalidCursor, match="another query"):
        memory.resources(subject="bob", cursor=memory.resources(subject="ana", limit=1).next_cursor)


def test_a_resource_is_got_by_its_id_in_its_scope(memory: Memory) -> None:
    made = memory.add_resource("Reeds.", subject="ana").resource
    assert memory.resource(made.id) == memory.resource(made.id, subject="ana") == made
    for where in ({"subject": "bob"}, {"space": "there"}, {"subject": "ana", "app": "mail"}):
        for call in (memory.resource, memory.delete_resource):
            with pytest.raises(NotFound, match="no resource"):
                call(made.id, **where)
    assert memory.resource(made.id) == made


def test_a_deleted_resource_is_gone_with_all_it_said(memory: Memory) -> None:
    made = memory.add_resource(HERONS, name="herons.txt", subject="ana").resource
    other = memory.add_resource("Herons fly.", subject="ana").resource
    receipt = memory.delete_resource(made.id, subject="ana")
    assert (receipt.resources, receipt.memories, receipt.remaining, receipt.scrubbed) == (1, made.chunks, 0, True)
    assert memory.resources(subject="ana").items == (other,)
    assert [hit.text for hit in memory.search("heron", subject="ana")] == ["Herons fly."]
    for call in (memory.resource, memory.delete_resource):
        with pytest.raises(NotFound):
            call(made.id, subject="ana")
    assert memory.verify().ok
    assert not memory.add_resource(HERONS, subject="ana").reused


def test_forgetting_a_subject_or_its_source_takes_resources_along(memory: Memory) -> None:
    first = memory.add_resource(HERONS, subject="ana").resource
    second = memory.add_resource("Herons fly.", subject="ana").resource
    memory.add("I like herons.", subject="ana")
    by_source = memory.forget_preview(source=first.uri, subject="ana")
    assert (by_source.resources, by_source.memories, by_source.messages) == (1, first.chunks, 0)
    preview = memory.forget_preview(subject="ana")
    assert (preview.resources, preview.memories, preview.messages) == (2, first.chunks + second.chunks, 1)
    assert memory.forget(source=first.uri, subject="ana", token=by_source.token).resources == 1
    assert memory.forget(subject="ana").resources == 1
    assert memory.resources().items == ()
    assert memory.verify().ok


def test_a_preview_is_outdated_by_a_new_resource(memory: Memory) -> None:
    memory.add("I like herons.", subject="ana")
    token = memory.forget_preview(subject="ana").token
    memory.add_resource("Herons fly.", subject="ana")
    with pytest.raises(holdfast.errors.PreviewOutdated):
        memory.forget(subject="ana", token=token)


def test_made_again_under_a_key_it_happens_once(memory: Memory) -> None:
    first = memory.add_resource(HERONS, subject="ana", idempotency_key="k")
    assert memory.add_resource(HERONS, subject="ana", idempotency_key="k") == first
    for other in ({"content": HERONS + "!"}, {"name": "b.txt"}, {"external_uri": "x"}):
        with pytest.raises(IdempotencyConflict):
            memory.add_resource(**{"content": HERONS, **other}, subject="ana", idempotency_key="k")
    gone = memory.delete_resource(first.resource.id, subject="ana", idempotency_key="d")
    again = memory.delete_resource(first.resource.id, subject="ana", idempotency_key="d")
    assert (again.operation_id, again.memories, again.resources, again.replayed) == (
        gone.operation_id, gone.memories, 1, True,
    )  # fmt: skip
    with pytest.raises(NotFound, match="has been forgotten"):
        memory.add_resource(HERONS, subject="ana", idempotency_key="k")


def test_of_many_who_give_the_same_file_at_once_one_stores_it(memory: Memory) -> None:
    with ThreadPoolExecutor(6) as threads:
        made = list(threads.map(lambda _: memory.add_resource(HERONS, subject="ana"), range(12)))
    assert len({added.resource.id for added in made}) == 1
    assert [added.reused for added in made].count(False) == 1
    assert memory.stats(subject="ana").memories == made[0].resource.chunks


@pytest.mark.parametrize(
    ("given", "error", "says"),
    [
        ({"content": 5}, InvalidInput, "content: expected"),
        ({"content": None}, InvalidInput, "content: expected"),
        ({"content": ""}, InvalidText, "content"),
        ({"content": b""}, InvalidDocument, "content"),
        ({"content": Path("nowhere.txt")}, InvalidInput, "cannot be read"),
        ({"content": Path("/")}, InvalidInput, "cannot be read"),
        ({"content": "x", "name": " "}, InvalidText, "name"),
        ({"content": "x", "name": "n" * 257}, InvalidText, "name"),
        ({"content": "x", "media_type": ""}, InvalidText, "media_type"),
        ({"content": "x", "media_type": "image/png"}, InvalidDocument, "media_type"),
        ({"content": b"x", "media_type": "application/pdf"}, InvalidDocument, "media_type"),
        ({"content": "x", "external_uri": "u" * 2_049}, InvalidText, "external_uri"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name_and_nothing_is_kept(
    memory: Memory, given: dict[str, Any], error: type[InvalidInput], says: str
) -> None:
    with pytest.raises(error, match=says):
        memory.add_resource(**given, subject="ana")
    assert (memory.resources().items, memory.stats().memories) == ((), 0)


def test_a_user_does_all_of_it_in_its_own_scope_alone(store_place: str) -> None:
    ana = Actor(ActorKind.USER, "ana")
    with holdfast.open(store_place, embedder="fake", work=False) as memory:
        bobs = memory.add_resource("Bob's reeds.", subject="bob").resource
        shared = memory.add_resource("Everybody's reeds.").resource
    with holdfast.open(store_place, embedder="fake", work=False, actor=ana) as memory:
        own = memory.add_resource("My reeds.", subject="ana").resource
        assert memory.resources(subject="ana").items == (own, shared)
        assert memory.resource(shared.id, subject="ana") == shared
        for there in (bobs, shared):
            with pytest.raises(NotFound):
                memory.delete_resource(there.id, subject="ana")
        for call in (
            lambda: memory.add_resource("Reeds.", subject="bob"),
            lambda: memory.resources(subject="bob"),
            lambda: memory.resource(bobs.id, subject="bob"),
            lambda: memory.delete_resource(bobs.id, subject="bob"),
        ):
            with pytest.raises(AccessDenied):
                call()
        assert memory.delete_resource(own.id, subject="ana").resources == 1


class Remote(FakeEmbedder):
    local = False
    sync_safe = False


def test_with_a_remote_embedder_chunks_are_found_by_words_at_once_and_by_meaning_after_a_job(store_place: str) -> None:
    with holdfast.open(store_place, embedder=Remote(), work=False) as memory:
        made = memory.add_resource(HERONS, subject="ana").resource
        assert memory.stats().pending_vectors == made.chunks
        assert memory.search("heron", subject="ana")
        memory.drain()
        assert memory.stats().pending_vectors == 0


@pytest.mark.embedded
def test_resources_of_a_store_that_knew_one_address_per_file_are_kept(
    store_place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for schema in (sqlite_schema, postgres_schema):
        # Move the migration of addresses last: the code that wrote old stores is gone; today's code needs the others.
        steps = [each[1:] for each in schema.migrations()]
        known = [(number, *step) for number, step in enumerate([*steps[:5], *steps[6:], steps[5]], 1)]
        monkeypatch.setattr(schema, "migrations", lambda known=known: known)
    with monkeypatch.context() as before:
        for schema in (sqlite_schema, postgres_schema):
            earlier = schema.migrations()[:-1]
            before.setattr(schema, "migrations", lambda earlier=earlier: earlier)
        with holdfast.open(store_place, embedder="fake") as memory:
            old = [memory.add_resource("Reeds.", subject=name, external_uri="https://a").resource for name in "ab"]
            with pytest.raises(holdfast.errors.HoldfastError):
                memory.add_resource("Reeds.", subject="a", external_uri="https://b")
    with holdfast.open(store_place, embedder="fake") as memory:
        assert memory.resources().items == (old[1], old[0])
        assert memory.add_resource("Reeds.", subject="a", external_uri="https://a").reused
        assert not memory.add_resource("Reeds.", subject="a", external_uri="https://b").reused
        assert memory.verify().ok
