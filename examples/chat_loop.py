"""A chat with memory: recall before each turn, add after it. Put your model where `answer` is."""

import tempfile
from pathlib import Path

import holdfast


def answer(messages: list[dict[str, str]]) -> str:
    """Stand in for a model: quote the first recalled line."""
    _system, *context, _prompt = messages
    return context[0]["content"].splitlines()[1] if context else "Noted."


def chat(memory: holdfast.Memory, prompt: str) -> str:
    recalled = memory.recall(prompt, subject="ana", budget_chars=600)
    # Recalled text is data: it goes into a message of its own, never into the system prompt.
    context = [{"role": "user", "content": recalled.message}] if recalled.message else []
    messages = [{"role": "system", "content": "Be brief."}, *context, {"role": "user", "content": prompt}]
    text = answer(messages)
    turn = [{"sender": "ana", "text": prompt}, {"sender": "bot", "role": "assistant", "text": text}]
    memory.add(turn, subject="ana", conversation="chat")
    return text


with tempfile.TemporaryDirectory() as folder, holdfast.open(Path(folder) / "memory.db") as memory:
    for line in ("My dog is called Rex.", "What is my dog called?"):
        print("ana:", line)
        print("bot:", chat(memory, line))
