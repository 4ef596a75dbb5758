"""Embedders with their real weights, and against a real server on loopback."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from holdfast.domain.checks import MAX_QUERY_CHARS, MAX_TEXT_CHARS
from holdfast.domain.ranking import FloatArray
from holdfast.errors import EmbedderMisconfigured, EmbedderUnavailable
from holdfast.installation import install_command
from holdfast.ports import Embedder, Purpose
from holdfast.ports.models import EmbeddingResult, ModelCallUsage
from holdfast.search.analyzer import TextAnalyzer
from holdfast.search.embedders import static
from holdfast.search.embedders.fake import FakeEmbedder
from holdfast.search.embedders.onnx import OnnxEmbedder
from holdfast.search.embedders.openai import OpenAIEmbedder
from holdfast.search.embedders.static import StaticEmbedder, WordTokenizer, tokenizes_by_word

TEXTS = [
    "The cat sleeps on the sofa.",
    "A kitten is napping on the couch.",
    "Stock markets fell sharply.",
    "我的猫在睡觉",
]


def embed(embedder: Embedder, texts: list[str]) -> FloatArray:
    return asyncio.run(embedder.embed(texts, Purpose.DOCUMENT))


@pytest.fixture(scope="session", params=["static", "onnx", "fake"])
def embedder(request: pytest.FixtureRequest) -> Embedder:
    if request.param == "static":
        return StaticEmbedder()
    if request.param == "onnx":
        return OnnxEmbedder(request.getfixturevalue("minilm"))
    return FakeEmbedder()


def test_there_is_a_unit_vector_per_text(embedder: Embedder) -> None:
    vectors = embed(embedder, TEXTS)
    assert vectors.shape == (len(TEXTS), embedder.dimensions)
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_has_the_same_vector_alone_and_among_others(embedder: Embedder) -> None:
    together = embed(embedder, [*TEXTS, "word " * 3000])
    for text, row in zip(TEXTS, together, strict=False):
        assert np.allclose(embed(embedder, [text])[0], row, atol=1e-6)


# Texts that affect where the static table's tokenizer splits: spaces of every kind, its own marks, bytes it falls
# back to.
_CUTTING = [
    "a",
    "the",
    "Lisbon",
    " ",
    " ",
    "  ",
    "\n",
    "\t",
    "é",
    "漢",
    "😀",
    "<s>",
    "<",
    "\u2581",
    ".",
    "'",
    "1",
    "\u00a0",
]
_CUTTING += ["\u3000", "\u200b", "\x01", "\ue000", "</s>", "<unk>", "<0x41>"]


def test_the_static_embedder_puts_the_tokens_of_words_together_as_the_tokenizer_would(
    static_embedder: StaticEmbedder,
) -> None:
    assert tokenizes_by_word(static_embedder.tokens.tokenizer), "no tokens are ever taken from the cache"
    chance = random.Random(5)
    texts = ["", *("".join(chance.choices(_CUTTING, k=chance.randint(1, 30))) for _ in range(5_000))]
    for _ in range(2):  # the second time, the words are cached
        made = static_embedder.tokens.of(texts)
        assert made == [static_embedder.tokens.tokenizer.encode(text, add_special_tokens=False).ids for text in texts]


def test_a_tokenizer_whose_words_are_not_on_their_own_is_given_whole_texts(static_embedder: StaticEmbedder) -> None:
    whole = Tokenizer.from_str(static_embedder.tokens.tokenizer.to_str())
    whole.add_tokens(["over the"])
    tokens = WordTokenizer(whole)
    assert tokens.of(["all over the place"]) == [whole.encode("all over the place", add_special_tokens=False).ids]
    assert tokens.of(["all over the place"]) != static_embedder.tokens.of(["all over the place"])


def test_a_static_vector_is_the_same_to_the_last_bit_alone_and_among_others(static_embedder: StaticEmbedder) -> None:
    texts = [*TEXTS, "word " * 300, "I moved to Lisbon last week."]
    together = static_embedder.vectors(texts)
    assert all(
        np.array_equal(static_embedder.vectors([text])[0], row) for text, row in zip(texts, together, strict=True)
    )


def test_static_vectors_made_in_parts_are_those_of_one_sum_to_the_last_bit(static_embedder: StaticEmbedder) -> None:
    chance = random.Random(7)
    ideographs = [chr(code) for code in range(0x4E00, 0x9FFF)]
    faces = [chr(code) for code in range(0x1F600, 0x1F640)]
    texts = ["", *TEXTS, "a", " ", "\n", "word " * 3_000, "x" * 20_000, ""]
    texts += ["".join(chance.choices(ideographs, k=chance.randint(1, 900))) for _ in range(100)]
    texts += ["".join(chance.choices(faces, k=chance.randint(1, 900))) for _ in range(50)]
    texts += [" ".join(chance.choices(["the", "cat", "sleeps", "Lisbon", "漢字"], k=30)) for _ in range(500)]
    chance.shuffle(texts)
    texts.insert(100, "".join(chance.choices(ideographs + faces, k=60_000)))
    table = static._read_table(static._package_directory() / static._WEIGHTS)
    expected = np.concatenate([in_one_sum(table, static_embedder.tokens.tokenizer, text) for text in texts])
    assert np.array_equal(static_embedder.vectors(texts).view(np.uint32), expected.view(np.uint32))
    for text, row in zip(texts[90:110], expected[90:110], strict=True):
        assert np.array_equal(static_embedder.vectors([text])[0].view(np.uint32), row.view(np.uint32))


def in_one_sum(table: FloatArray, tokenizer: Tokenizer, text: str) -> FloatArray:
    tokens = tokenizer.encode(text, add_special_tokens=False).ids
    if not tokens:
        return np.zeros((1, table.shape[1]), np.float32)
    sums = np.add.reduceat(table[tokens], [0], axis=0)
    unit: FloatArray = sums / np.maximum(np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None], np.float32(1e-12))
    return unit


@pytest.mark.parametrize("script", ["记忆", "😀"])
def test_the_longest_text_takes_little_memory_to_embed(static_embedder: StaticEmbedder, script: str) -> None:
    text = script * (MAX_TEXT_CHARS // len(script))
    # Distinct pieces, so that none shares a lookup.
    pieces = [f"{at}{piece}" for at, piece in enumerate(TextAnalyzer().analyze(text).pieces)]
    assert traced_peak(lambda: static_embedder.vectors(pieces)) < 40_000_000


def test_one_long_text_takes_little_memory_to_embed(static_embedder: StaticEmbedder) -> None:
    """The longest query allowed: no longer text is embedded in one piece."""
    assert traced_peak(lambda: static_embedder.vectors(["😀" * MAX_QUERY_CHARS])) < 20_000_000


def traced_peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_the_words_whose_tokens_are_kept_are_bounded(
    static_embedder: StaticEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(static, "CACHED_WORDS", 100)
    tokens = WordTokenizer(static_embedder.tokens.tokenizer)
    for start in range(0, 1_000, 30):
        texts = [f"word{number} word{number + 1}" for number in range(start, start + 30)] + ["x" * 1_000]
        assert tokens.of(texts) == static_embedder.tokens.of(texts)
        assert len(tokens) <= 100


def test_no_texts_give_no_vectors(embedder: Embedder) -> None:
    assert embed(embedder, []).shape == (0, embedder.dimensions)


def test_odd_texts_are_embedded_too(embedder: Embedder) -> None:
    vectors = embed(embedder, ["...", "\u200b", "🙂", "a" * 5000])
    assert np.isfinite(vectors).all()


def test_a_fingerprint_is_stable_and_a_local_embedder_says_so(embedder: Embedder) -> None:
    assert embedder.fingerprint == embedder.fingerprint
    assert embedder.local


def test_fingerprints_differ_between_embedders(minilm: Path) -> None:
    assert len({StaticEmbedder().fingerprint, OnnxEmbedder(minilm).fingerprint, FakeEmbedder().fingerprint}) == 3
    assert FakeEmbedder(32).fingerprint != FakeEmbedder(64).fingerprint


@pytest.mark.parametrize("kind", ["static", "onnx"])
def test_meaning_brings_texts_together(kind: str, request: pytest.FixtureRequest) -> None:
    chosen = StaticEmbedder() if kind == "static" else OnnxEmbedder(request.getfixturevalue("minilm"))
    cat, kitten, stocks, _ = embed(chosen, TEXTS)
    assert cat @ kitten > cat @ stocks + 0.1


def test_large_work_gives_the_same_as_small_work() -> None:
    static = StaticEmbedder()
    texts = [f"{text} {at}" for at in range(1500) for text in TEXTS[:3]]
    assert np.array_equal(embed(static, texts)[4000:4010], embed(static, texts[4000:4010]))


def test_static_files_that_are_missing_are_named(tmp_path: Path) -> None:
    with pytest.raises(EmbedderMisconfigured, match="reinstall wordllama"):
        StaticEmbedder(tmp_path)


# --- onnx -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", ["model.onnx", "tokenizer.json"])
def test_an_onnx_directory_names_the_file_that_it_lacks(minilm: Path, tmp_path: Path, missing: str) -> None:
    for name in {"model.onnx", "tokenizer.json"} - {missing}:
        shutil.copy(minilm / name, tmp_path / name)
    with pytest.raises(EmbedderMisconfigured, match=missing):
        OnnxEmbedder(tmp_path)


@pytest.mark.parametrize("broken", ["model.onnx", "tokenizer.json"])
def test_an_onnx_file_that_cannot_be_read_is_named(minilm: Path, tmp_path: Path, broken: str) -> None:
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copy(minilm / name, tmp_path / name)
    (tmp_path / broken).chmod(0o644)
    (tmp_path / broken).write_bytes(b"not a model")
    with pytest.raises(EmbedderMisconfigured, match=broken):
        OnnxEmbedder(tmp_path)


@pytest.fixture
def hidden_states(tmp_path: Path) -> Path:
    """A graph that returns a state per token and takes `token_type_ids`, with a tokenizer of three words.

    Made by this code, with onnx 1.x:

        words = np.array([[9, 9, 9], [3, 0, 0], [0, 4, 0], [0, 0, 5]], np.float32)  # padding, and three words
        types = np.array([[0, 0, 1], [7, 7, 7]], np.float32)
        names = ("input_ids", "attention_mask", "token_type_ids")
        ids = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "length"]) for name in names]
        states = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "length", 3])
        nodes = [
            helper.make_node("Gather", ["words", "input_ids"], ["word"]),
            helper.make_node("Gather", ["types", "token_type_ids"], ["type"]),
            helper.make_node("Add", ["word", "type"], ["last_hidden_state"]),
        ]
        tables = [numpy_helper.from_array(words, "words"), numpy_helper.from_array(types, "types")]
        graph = helper.make_graph(nodes, "hidden_states", ids, [states], tables)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
        save(model, "tests/search/data/hidden_states.onnx")
    """
    shutil.copy(Path(__file__).parent / "data" / "hidden_states.onnx", tmp_path / "model.onnx")
    vocabulary = {"[PAD]": 0, "tea": 1, "cat": 2, "sea": 3}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[PAD]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def test_states_of_tokens_are_averaged(hidden_states: Path) -> None:
    embedder = OnnxEmbedder(hidden_states)
    assert embedder.dimensions == 3
    (mean,) = embed(embedder, ["tea cat"])
    expected = np.array([1.5, 2.0, 1.0], np.float32)  # mean of (3, 0, 1) and (0, 4, 1); the 1 comes from the token type
    assert np.allclose(mean, expected / np.linalg.norm(expected), atol=1e-6)


def test_padding_does_not_count_in_the_average(hidden_states: Path) -> None:
    embedder = OnnxEmbedder(hidden_states)
    together = embed(embedder, ["tea", "tea cat sea sea cat tea"])
    assert np.array_equal(together[0], embed(embedder, ["tea"])[0])


def test_an_embedder_that_needs_onnxruntime_says_how_to_get_it(tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules['onnxruntime'] = None\n"
        "from holdfast.errors import EmbedderMisconfigured\n"
        "from holdfast.search.embedders.onnx import OnnxEmbedder\n"
        "try: OnnxEmbedder(sys.argv[1])\n"
        "except EmbedderMisconfigured as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    assert install_command("onnx") in done.stdout


# --- openai -----------------------------------------------------------------------------------------------------------


@dataclass
class Endpoint:
    """A server on loopback that embeds a text by its length, and fails as the test sets it."""

    url: str = ""
    failures: list[int] = field(default_factory=list)
    requests: list[dict[str, object]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    dimensions: int = 3
    body: bytes | None = None
    usage: object = None

    def answer(self, request: dict[str, object]) -> bytes:
        texts = request["input"]
        assert isinstance(texts, list)
        data = [
            {"index": at, "embedding": [float(len(t)), 1.0, 2.0, 3.0][: self.dimensions]} for at, t in enumerate(texts)
        ]
        said = {} if self.usage is None else {"usage": self.usage}
        return self.body or json.dumps({"data": data[::-1], **said}).encode()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    state = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(request)
            state.keys.append(self.headers.get("Authorization"))
            status = state.failures.pop(0) if state.failures else 200
            body = state.answer(request) if status == 200 else b'{"error": "sk-secret is bad"}'
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


def remote(endpoint: Endpoint, **options: object) -> OpenAIEmbedder:
    return OpenAIEmbedder("m", base_url=endpoint.url, api_key="sk-secret", first_wait_seconds=0.0, **options)  # type: ignore[arg-type]


def test_an_endpoint_embeds_in_batches_and_in_order(endpoint: Endpoint) -> None:
    texts = ["x" * (1 + at % 7) for at in range(300)]
    vectors = embed(remote(endpoint), texts)
    assert len(endpoint.requests) == 3
    assert np.allclose(vectors[:, 0] / vectors[:, 1], [len(text) for text in texts], atol=1e-4)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert endpoint.keys[0] == "Bearer sk-secret"


@pytest.mark.parametrize("status", [429, 500, 503])
def test_what_fails_for_a_while_is_tried_again(endpoint: Endpoint, status: int) -> None:
    endpoint.failures = [status, status]
    assert embed(remote(endpoint), ["a"]).shape == (1, 3)
    assert len(endpoint.requests) == 3


def test_what_fails_for_long_is_given_up(endpoint: Endpoint) -> None:
    endpoint.failures = [503] * 9
    with pytest.raises(EmbedderUnavailable, match="503"):
        embed(remote(endpoint, attempts=3), ["a"])
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize(("status", "advice"), [(401, "key"), (404, "model"), (400, "texts")])
def test_what_cannot_get_better_is_not_tried_again(endpoint: Endpoint, status: int, advice: str) -> None:
    endpoint.failures = [status]
    with pytest.raises(EmbedderMisconfigured, match=advice) as caught:
        embed(remote(endpoint), ["a"])
    assert "sk-secret" not in f"{caught.value!r} {caught.value}"
    assert len(endpoint.requests) == 1


def test_an_endpoint_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(EmbedderUnavailable, match="cannot be reached"):
        embed(OpenAIEmbedder("m", base_url="http://127.0.0.1:9/v1", attempts=2, first_wait_seconds=0.0), ["a"])


@pytest.mark.parametrize(
    "body", [b"<html>", b'{"data": 3}', b'{"data": []}', b'{"data": [{"index": 0, "embedding": ["x"]}]}']
)
def test_an_answer_that_makes_no_sense_is_no_vector(endpoint: Endpoint, body: bytes) -> None:
    endpoint.body = body
    with pytest.raises(EmbedderUnavailable):
        embed(remote(endpoint), ["a"])


def metered(embedder: OpenAIEmbedder, texts: list[str]) -> EmbeddingResult:
    return asyncio.run(embedder.embed_metered(texts, Purpose.DOCUMENT))


def test_what_an_endpoint_says_that_it_took_is_told_in_sum(endpoint: Endpoint) -> None:
    endpoint.usage = {"prompt_tokens": 7, "total_tokens": 7}
    embedder = remote(endpoint)
    found = metered(embedder, ["x"] * 300)
    assert len(endpoint.requests) == 3
    assert found.usage == ModelCallUsage("m", requests=3, input_tokens=21)
    assert found.vectors.shape == (300, 3)
    assert embedder.provider == "127.0.0.1"


@pytest.mark.parametrize("told", [None, 7, {}, {"prompt_tokens": "7"}, {"prompt_tokens": -7}, {"prompt_tokens": True}])
def test_an_endpoint_that_does_not_say_what_it_took_took_nothing(endpoint: Endpoint, told: object) -> None:
    endpoint.usage = told
    assert metered(remote(endpoint), ["a"]).usage is None
    assert metered(remote(endpoint), []).usage is None


def test_dimensions_are_learned_once_and_then_checked(endpoint: Endpoint) -> None:
    async def twice() -> None:
        embedder = remote(endpoint)
        assert embedder.dimensions == 0
        await embedder.embed(["a"], Purpose.QUERY)
        assert embedder.dimensions == 3
        endpoint.dimensions = 2
        with pytest.raises(EmbedderMisconfigured, match="2 dimensions, not 3"):
            await embedder.embed(["a"], Purpose.QUERY)
        await embedder.close()

    asyncio.run(twice())


def test_dimensions_that_are_set_are_asked_for(endpoint: Endpoint) -> None:
    embed(remote(endpoint, dimensions=3), ["a"])
    assert endpoint.requests[0]["dimensions"] == 3


def test_the_key_is_not_shown_and_the_model_is_part_of_the_fingerprint(endpoint: Endpoint) -> None:
    embedder = remote(endpoint)
    assert "sk-secret" not in repr(embedder) + embedder.fingerprint
    assert ":m:" in embedder.fingerprint
    assert not embedder.local


def test_a_model_must_be_named() -> None:
    with pytest.raises(EmbedderMisconfigured, match="name of a model"):
        OpenAIEmbedder(" ")
