"""The embedders that a name stands for. Only the chosen one is imported."""

from __future__ import annotations

from pathlib import Path

from holdfast.domain.custom_embedder import DERIVED, NAMED
from holdfast.domain.location import is_valid_server_url
from holdfast.errors import EmbedderMisconfigured
from holdfast.ports import Embedder


def make_named_embedder(name: str, *, url: str, key: str | None) -> Embedder:
    """Make the embedder of a name. `url` and `key` are those of the endpoint, for `openai:<model>`."""
    kind, _, argument = name.partition(":")
    if kind == "static" and not argument:
        from holdfast.search.embedders.static import StaticEmbedder

        return StaticEmbedder()
    if kind == "onnx" and argument:
        from holdfast.search.embedders.onnx import OnnxEmbedder

        return OnnxEmbedder(Path(argument))
    if kind == "openai" and argument:
        from holdfast.search.embedders.openai import OpenAIEmbedder

        return OpenAIEmbedder(argument, base_url=_validate_endpoint(url), api_key=key)
    if kind == "fake" and not argument:
        from holdfast.search.embedders.fake import FakeEmbedder

        return FakeEmbedder()
    if kind in (DERIVED, NAMED):
        raise EmbedderMisconfigured(
            f"{name!r:.80} is an embedder of a Python program, which no name can load; pass its function or object as"
            " embedder= of holdfast.open"
        )
    raise EmbedderMisconfigured(
        f"there is no embedder {name!r:.80}; use static, onnx:<directory>, openai:<model> or fake"
    )


def _validate_endpoint(url: str) -> str:
    """Validate the endpoint's URL. Errors do not show it, since it may hold a key."""
    if not is_valid_server_url(url):
        raise EmbedderMisconfigured(
            "HOLDFAST_EMBEDDER_URL is not the URL of a server; write it like http://127.0.0.1:11434/v1"
        )
    return url.strip()
