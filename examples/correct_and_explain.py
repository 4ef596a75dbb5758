"""Correct a memory, read its history, and see how a hit got its score."""

import tempfile
from pathlib import Path

import holdfast

with tempfile.TemporaryDirectory() as folder, holdfast.open(Path(folder) / "memory.db") as memory:
    flight = memory.remember("Ana flies to Porto on 3 May.", subject="ana")
    memory.remember("Ana drinks tea in the morning.", subject="ana")
    memory.correct(flight.id, "Ana flies to Porto on 5 May.", reason="rebooked")

    question = {"subject": "ana", "kind": "memory", "top_k": 1}
    print("now:   ", memory.search("When does Ana fly?", **question)[0].text)
    print("before:", memory.search("When does Ana fly?", as_of=flight.recorded_at, **question)[0].text)

    for part in memory.explain("When does Ana fly?", **question).hits[0].components:
        print(f"  {part.name:<14} {part.contribution:.3f}")
