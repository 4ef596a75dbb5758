"""Add two messages, search by meaning, and show what each hit rests on."""

import tempfile
from pathlib import Path

import holdfast

with tempfile.TemporaryDirectory() as folder, holdfast.open(Path(folder) / "memory.db") as memory:
    memory.add("I moved to Lisbon last week.", subject="ana")
    memory.add("I am allergic to peanuts.", subject="ana")
    for hit in memory.search("Which food must Ana avoid?", subject="ana", top_k=1):
        print(f"{hit.text}  (score {hit.score:.2f})")
        print("evidence:", [link.text for link in hit.evidence])
