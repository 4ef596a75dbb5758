"""The options of `search`, `explain` and `recall`. Written by `make generate`; do not edit.

Text, because importing the requests would slow down every command.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from holdfast.cli.options import OnlyText, option


@dataclass(frozen=True, slots=True)
class SearchFilters:
    """Search options besides the query."""

    top_k: Annotated[int, option("--top-k", "N", "At most N results.")] = 10
    kind: Annotated[OnlyText, option("--kind", "KIND", "message or memory.")] = None
    plane: Annotated[
        list[str] | None, option("--plane", "PLANE", "Memories of these planes, such as long_term. Repeatable.")
    ] = None
    sender: Annotated[OnlyText, option("--sender", "NAME", "Messages of this sender.")] = None
    role: Annotated[OnlyText, option("--role", "ROLE", "Messages of this role.")] = None
    source: Annotated[OnlyText, option("--source", "NAME", "Records from this source.")] = None
    said_from: Annotated[OnlyText, option("--said-from", "TIME", "Messages said at this time or later.")] = None
    said_to: Annotated[OnlyText, option("--said-to", "TIME", "Messages said before this time.")] = None
    as_of: Annotated[OnlyText, option("--as-of", "TIME", "As known at this time, such as 2026-11-15T09:30.")] = None
    valid_at: Annotated[OnlyText, option("--valid-at", "TIME", "As true at this time.")] = None
    min_score: Annotated[
        float | None, option("--min-score", "SCORE", "The minimum score; `recall` takes 0 (all) to 1.")
    ] = None
    method: Annotated[
        str, option("--method", "METHOD", "hybrid, keyword (by words alone) or vector (by meaning alone).")
    ] = "hybrid"
    radius: Annotated[float | None, option("--radius", "SIMILARITY", "The minimum similarity of meaning, 0 to 1.")] = (
        None
    )

    def keywords(self) -> dict[str, Any]:
        """Return the options as keyword arguments of the library."""
        return {
            "top_k": self.top_k,
            "kind": self.kind,
            "planes": self.plane or None,
            "sender": self.sender,
            "role": self.role,
            "source": self.source,
            "said_from": self.said_from,
            "said_to": self.said_to,
            "as_of": self.as_of,
            "valid_at": self.valid_at,
            "min_score": self.min_score,
            "method": self.method,
            "radius": self.radius,
        }


@dataclass(frozen=True, slots=True)
class RecallOptions:
    """Options of `recall` besides the query."""

    top_k: Annotated[int, option("--top-k", "N", "At most N results.")] = 8
    plane: Annotated[
        list[str] | None, option("--plane", "PLANE", "Memories of these planes, such as long_term. Repeatable.")
    ] = None
    sender: Annotated[OnlyText, option("--sender", "NAME", "Messages of this sender.")] = None
    role: Annotated[OnlyText, option("--role", "ROLE", "Messages of this role.")] = None
    source: Annotated[OnlyText, option("--source", "NAME", "Records from this source.")] = None
    said_from: Annotated[OnlyText, option("--said-from", "TIME", "Messages said at this time or later.")] = None
    said_to: Annotated[OnlyText, option("--said-to", "TIME", "Messages said before this time.")] = None
    as_of: Annotated[OnlyText, option("--as-of", "TIME", "As known at this time, such as 2026-11-15T09:30.")] = None
    valid_at: Annotated[OnlyText, option("--valid-at", "TIME", "As true at this time.")] = None
    min_score: Annotated[
        float | None, option("--min-score", "SCORE", "The minimum score; `recall` takes 0 (all) to 1.")
    ] = None
    method: Annotated[
        str, option("--method", "METHOD", "hybrid, keyword (by words alone) or vector (by meaning alone).")
    ] = "hybrid"
    radius: Annotated[float | None, option("--radius", "SIMILARITY", "The minimum similarity of meaning, 0 to 1.")] = (
        None
    )
    budget_chars: Annotated[
        int | None, option("--budget-chars", "N", "The size of the message in characters; 4,000 without any budget.")
    ] = None
    budget_tokens: Annotated[
        int | None,
        option("--budget-tokens", "N", "The size of the message in tokens of the embedder, or of a given tokenizer."),
    ] = None

    def keywords(self) -> dict[str, Any]:
        """Return the options as keyword arguments of the library."""
        return {
            "top_k": self.top_k,
            "planes": self.plane or None,
            "sender": self.sender,
            "role": self.role,
            "source": self.source,
            "said_from": self.said_from,
            "said_to": self.said_to,
            "as_of": self.as_of,
            "valid_at": self.valid_at,
            "min_score": self.min_score,
            "method": self.method,
            "radius": self.radius,
            "budget_chars": self.budget_chars,
            "budget_tokens": self.budget_tokens,
        }
