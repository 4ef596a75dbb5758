"""Documents: upload, deduplication, search, listing, deletion; and files whose content differs from their type."""

from __future__ import annotations

import hashlib
import io
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice

import pytest
from served import Gateway, Visitor

from holdfast.documents.file_types import FileType
from holdfast.documents.reader import DocumentReader
from holdfast.domain.resources import Document


def test_an_uploaded_text_is_found(visitor: Visitor) -> None:
    answer = visitor.upload(b"The harbour opens at six in the morning.", "harbour.txt")
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert made["session_id"] == f"resource:{visitor.user_id}:{made['resource_id']}" == made["uri"]
    assert made["sha256"] == hashlib.sha256(b"The harbour opens at six in the morning.").hexdigest()
    assert (made["status"], made["reused"], made["name"]) == ("extracted", False, "harbour.txt")
    (found,) = visitor.search("When does the harbour open?", "resources").json()["results"]
    assert found["text"] == "The harbour opens at six in the morning."
    assert (found["source_scope"], found["session_id"], found["resource_uri"]) == (
        "resources", made["session_id"], made["uri"],
    )  # fmt: skip


def test_the_same_file_is_kept_once(visitor: Visitor) -> None:
    first, again = visitor.upload(b"Twice the same."), visitor.upload(b"Twice the same.", "another-name.txt")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json()["reused"] is True
    assert again.json()["resource_id"] == first.json()["resource_id"]
    assert len(visitor.http.get("/resources", headers=visitor.headers).json()["resources"]) == 1


def test_resources_are_listed_read_and_deleted(visitor: Visitor) -> None:
    ids = [visitor.upload(f"Document {number}.".encode()).json()["resource_id"] for number in range(3)]
    listed = visitor.http.get("/resources", params={"limit": 2}, headers=visitor.headers).json()
    assert [each["resource_id"] for each in listed["resources"]] == ids[:0:-1]
    rest = visitor.http.get("/resources", params={"cursor": listed["next_cursor"]}, headers=visitor.headers).json()
    assert [each["resource_id"] for each in rest["resources"]] == ids[:1]
    one = visitor.http.get(f"/resources/{ids[0]}", headers=visitor.headers).json()
    assert one["resource_id"] == ids[0]
    gone = visitor.http.delete(f"/resources/{ids[0]}", headers=visitor.headers)
    assert (gone.status_code, gone.json()["remaining"]) == (200, 0)
    assert visitor.http.get(f"/resources/{ids[0]}", headers=visitor.headers).status_code == 404
    assert (
        visitor.texts("Document 0", "resources") == ["Document 1.", "Document 2."]
        or len(visitor.texts("Document 0", "resources")) == 2
    )


def test_something_kept_elsewhere_is_found_under_its_address(visitor: Visitor) -> None:
    body = {**visitor.signed, "uri": "https://example.org/page", "text": "# Bells\n\nThe bells ring at noon.",
            "media_type": "text/markdown"}  # fmt: skip
    made = visitor.http.post("/resources/external", json=body)
    assert made.status_code == 201, made.text
    (found,) = visitor.search("bells", "resources").json()["results"]
    assert found["resource_uri"] == "https://example.org/page"
    assert found["session_id"] == made.json()["session_id"]


def test_the_same_text_of_another_address_is_found_under_both(visitor: Visitor) -> None:
    addresses = ["https://example.org/a", "https://example.org/b"]
    bodies = [{**visitor.signed, "uri": address, "text": "The bells ring at noon."} for address in addresses]
    made = [visitor.http.post("/resources/external", json=body) for body in (*bodies, bodies[0])]
    assert [answer.status_code for answer in made] == [201, 201, 200]
    assert made[2].json()["resource_id"] == made[0].json()["resource_id"] != made[1].json()["resource_id"]
    found = visitor.search("bells", "resources").json()["results"]
    assert sorted(each["resource_uri"] for each in found) == addresses


def test_an_address_that_would_run_is_refused(visitor: Visitor) -> None:
    body = {**visitor.signed, "uri": "javascript:alert(1)", "text": "Follow me."}
    answer = visitor.http.post("/resources/external", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "uri")


def test_a_file_whose_chunk_was_forgotten_is_read_again(visitor: Visitor) -> None:
    first = visitor.upload(b"The ferry leaves at nine.").json()
    (found,) = visitor.search("ferry", "resources").json()["results"]
    gone = visitor.http.delete(f"/memories/{found['id']}", headers=visitor.headers)
    assert gone.status_code == 200, gone.text
    again = visitor.upload(b"The ferry leaves at nine.")
    assert (again.status_code, again.json()["reused"]) == (201, False)
    assert again.json()["resource_id"] != first["resource_id"]
    assert visitor.texts("ferry", "resources") == ["The ferry leaves at nine."]
    listed = visitor.http.get("/resources", headers=visitor.headers).json()["resources"]
    assert [each["resource_id"] for each in listed] == [again.json()["resource_id"]]


def test_nobody_sees_another_users_resources(gateway: Gateway, visitor: Visitor) -> None:
    made = visitor.upload(b"Only mine.").json()
    other = gateway.user("the neighbour of resources")
    assert other.http.get(f"/resources/{made['resource_id']}", headers=other.headers).status_code == 404
    assert other.http.delete(f"/resources/{made['resource_id']}", headers=other.headers).status_code == 404
    assert other.http.get("/resources", headers=other.headers).json()["resources"] == []
    assert visitor.texts("mine", "resources") == ["Only mine."]


def test_one_users_crowd_of_documents_is_told_to_come_again_and_keeps_nobody_out(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    free, read = threading.Event(), DocumentReader._read

    def held(reader: DocumentReader, kind: FileType, content: bytes, media_type: str | None) -> Document:
        assert content.endswith(b"mine") or free.wait(60)
        return read(reader, kind, content, media_type)

    monkeypatch.setattr(DocumentReader, "_read", held)
    user, other = gateway.user("the crowd"), gateway.user("who comes beside the crowd")
    with ThreadPoolExecutor(12) as threads:
        try:
            pages = [f"<html><p>We all come at once, {number}".encode() for number in range(12)]
            sent = [threads.submit(user.upload, page, "page.html") for page in pages]
            # All others wait until they are released, so the first responses are refusals.
            refused = [each.result() for each in islice(as_completed(sent, timeout=60), 3)]
            assert other.upload(b"<html><p>Only mine", "page.html").status_code == 201
        finally:
            free.set()
        answers = [each.result() for each in sent]
    assert [(answer.status_code, answer.json()["code"]) for answer in refused] == [(503, "documents_busy")] * 3
    assert all(answer.headers["retry-after"] == "1" for answer in refused)
    assert sorted(answer.status_code for answer in answers) == [201] * 9 + [503] * 3


def bomb() -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"0" * (200 * 1024 * 1024))
        archive.writestr("[Content_Types].xml", b"<Types/>")
    return packed.getvalue()


BAD_FILES = {
    "a PDF that is none": (b"hello", "report.pdf", "application/pdf"),
    "a PDF that ends early": (b"%PDF-1.7\n1 0 obj", "report.pdf", "application/pdf"),
    "an archive that explodes": (bomb(), "letter.docx", "application/octet-stream"),
    "a program": (b"\x7fELF" + bytes(range(256)) * 10, "tool", "application/octet-stream"),
    "nothing": (b"", "empty.txt", "text/plain"),
    "spaces": (b"   \n ", "blank.txt", "text/plain"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_cannot_be_read_is_refused(visitor: Visitor, case: str) -> None:
    answer = visitor.upload(*BAD_FILES[case])
    assert answer.status_code == 422, answer.text
    assert "file" in answer.json()["detail"]
    assert visitor.http.get("/resources", headers=visitor.headers).json()["resources"] == []


def test_a_form_that_is_cut_off_or_is_none_is_refused(visitor: Visitor) -> None:
    head = {**visitor.headers, "Content-Type": "multipart/form-data; boundary=b"}
    cut = b'--b\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\nhello'
    answers = [
        visitor.http.post("/resources", content=cut, headers=head),
        visitor.http.post("/resources", content=b"", headers=head),
        visitor.http.post("/resources", content=b"x", headers={**head, "Content-Type": "multipart/form-data"}),
        visitor.http.post("/resources", json={"file": "x"}, headers=visitor.headers),
        visitor.http.post("/resources", data={"user_id": "x"}, headers=visitor.headers),
        visitor.http.post("/resources", files={"file": ("a", b"x")}, data={"colour": "red"}, headers=visitor.headers),
    ]
    assert [answer.status_code // 100 for answer in answers] == [4] * len(answers)
    assert all(answer.headers["content-type"] == "application/problem+json" for answer in answers)
    assert "has an unknown field; known are user_id" in answers[-1].json()["detail"]
    assert visitor.http.get("/resources", headers=visitor.headers).json()["resources"] == []


def test_two_files_in_one_form_are_refused_and_none_is_kept(visitor: Visitor) -> None:
    files = [("file", (f"{name}.txt", name.encode(), "text/plain")) for name in ("first", "second")]
    answer = visitor.http.post("/resources", data=visitor.signed, files=files)
    assert answer.status_code == 422, answer.text
    assert answer.json()["detail"].startswith("file: was sent 2 times")
    assert visitor.http.get("/resources", headers=visitor.headers).json()["resources"] == []


def test_a_form_says_what_is_wrong_with_it(visitor: Visitor) -> None:
    words = visitor.http.post("/resources", files={"file": (None, "no file")}, headers=visitor.headers)
    assert (words.status_code, words.json()["errors"][0]["problem"][:15]) == (422, "expected a file")
    unbounded = {**visitor.headers, "Content-Type": "multipart/form-data"}
    broken = visitor.http.post("/resources", content=b"--x\r\n", headers=unbounded)
    assert (broken.status_code, broken.json()["code"]) == (400, "malformed_form")
