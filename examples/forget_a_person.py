"""Show what a forget would delete, delete it, and read the receipt."""

import tempfile
from pathlib import Path

import holdfast

with tempfile.TemporaryDirectory() as folder, holdfast.open(Path(folder) / "memory.db") as memory:
    memory.add("My passport number is X1234567.", subject="ana")
    memory.add("I like tea.", subject="ben")

    preview = memory.forget_preview(subject="ana")
    print("would delete:", preview.messages, "message(s),", preview.memories, "memories")
    receipt = memory.forget(subject="ana", token=preview.token)
    print("remaining:", receipt.remaining, "- bytes overwritten:", receipt.scrubbed)
    print("ben still has:", [hit.text for hit in memory.search("drink", subject="ben")])
