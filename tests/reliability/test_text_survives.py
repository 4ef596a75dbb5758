"""Any accepted text is returned unchanged from every field."""

from __future__ import annotations

import asyncio
import os
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import holdfast
from holdfast.domain.memory import MemoryRecord
from holdfast.domain.transcript import Message

TEXTS = int(os.environ.get("HOLDFAST_TEXTS", "2000"))
BATCH = 40

# Any text except those that validation refuses: NUL, lone surrogates, the empty text.
STORABLE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=60)
TEXT = STORABLE.filter(str.strip)


@settings(max_examples=TEXTS // BATCH, deadline=None, suppress_health_check=list(HealthCheck))
@given(texts=st.lists(TEXT, min_size=BATCH, max_size=BATCH))
def test_text_survives_adding_finding_listing_and_reopening(texts: list[str]) -> None:
    async def whole(path: Path) -> None:
        async with holdfast.open_async(path, embedder="fake", work=False) as memory:
            # The same words in every field: text, sender, id and metadata.
            messages = [
                {"text": text, "sender": text, "id": f"{number}{text}", "metadata": {text: text}}
                for number, text in enumerate(texts)
            ]
            added = await memory.add(messages, subject="ana", source=texts[0])
            # Each of a subject of its own: the same statement of one subject is one memory.
            learned = [
                await memory.remember(text, subject=f"{number}", metadata={text: text})
                for number, text in enumerate(texts[:5])
            ]
            corrected = [await memory.correct(each.id, texts[-1], reason=each.text) for each in learned]
            for text in texts[:5]:
                hits = await memory.search(text, subject="ana", top_k=1_000)
                found = {hit.id: hit.text for hit in hits if hit.kind == "message"}
                assert found.items() <= dict(zip(added.message_ids, texts, strict=True)).items()
                assert text in found.values()
        async with holdfast.open_async(path, embedder="fake", work=False) as memory:
            listed = {record.id: record for record in (await memory.list(limit=1_000)).items}
            for number, (message_id, text) in enumerate(zip(added.message_ids, texts, strict=True)):
                message = await memory.get(str(message_id))
                assert isinstance(message, Message)
                assert listed[message.id] == message
                assert (message.text, message.sender, message.external_id, message.source, dict(message.metadata)) == (
                    text, text, f"{number}{text}", texts[0], {text: text},
                )  # fmt: skip
            for first, second in zip(learned, corrected, strict=True):
                history = await memory.history(first.id)
                assert [record.text for record in history] == [first.text, texts[-1]]
                assert listed[first.id] == second == history[-1]
                assert isinstance(second, MemoryRecord)
                assert (second.reason, dict(second.metadata)) == (first.text, {first.text: first.text})
            assert (await memory.verify()).ok

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(whole(Path(folder) / "memory.db"))


def test_a_long_text_survives(tmp_path: Path) -> None:
    text = "".join(chr(code) for code in range(1, 0x3000) if not 0xD800 <= code < 0xE000) * 60
    with holdfast.open(tmp_path / "memory.db", embedder="fake", work=False) as memory:
        added = memory.add(text, subject="ana")
        assert memory.get(str(added.message_ids[0])).text == text
        assert memory.verify().ok
