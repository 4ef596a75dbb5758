"""The content of a message as other programs write it: texts, and parts of OpenAI, Anthropic and LangChain.

A part is a dictionary or an object with a `type`. Texts are joined. Images, audio and files become a reference such as
`[image: https://example.com/cat.png]`, never their data. A call of a tool becomes the line `name(arguments)`. The
results of tools are kept apart: they are not the words of whoever sends them. Reasoning, and what a provider's own
tools return, are left out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.domain.checks import MAX_METADATA_CHARS
from holdfast.errors import InvalidInput

MAX_REFERENCE_CHARS = 1_000
_MAX_TYPE_CHARS = 128
_MAX_REFERENCES = 16  # in metadata; the text names all
_TEXTS = frozenset({"text", "input_text", "output_text", "summary_text"})
_ATTACHMENTS = {
    "image": "image", "image_url": "image", "input_image": "image", "image_file": "image",
    "computer_screenshot": "image", "audio": "audio", "input_audio": "audio", "video": "video", "video_url": "video",
    "file": "file", "input_file": "file", "document": "file", "container_upload": "file", "text-plain": "file",
    "search_result": "file",
}  # fmt: skip
_RESULTS = frozenset({"tool_result", "program_output"})
_CALLS = frozenset({"tool_use", "tool_call"})
# Said to nobody, or of use to a provider alone.
_SILENT = frozenset(
    {
        "thinking", "redacted_thinking", "reasoning", "compaction", "compaction_trigger", "item_reference", "fallback",
        "mcp_list_tools", "mcp_tool_listing", "mcp_approval_request", "mcp_approval_response", "additional_tools",
        "tool_addition", "tool_removal", "tool_reference", "tool_call_chunk", "server_tool_call_chunk",
        "invalid_tool_call", "server_tool_result", "browser_state",
    }
)  # fmt: skip
# Where a part says what it holds, the best first.
_ADDRESSES = ("url", "image_url", "file_url", "video_url", "source")
_NAMES = ("filename", "file_name", "title", "file_id", "media_type", "mime_type", "format", "id")
_DATA = ("data", "base64", "file_data", "bytes")
_INNER = ("source", "image_url", "image_file", "input_audio", "file", "video_url", "audio", "extras")
_ARGUMENTS = ("arguments", "args", "input", "action", "queries", "code")


def value_of(thing: object, name: str) -> Any:
    """Return an entry of a dictionary, or an attribute of an object; None if there is none."""
    return thing.get(name) if isinstance(thing, Mapping) else getattr(thing, name, None)


def format_call(name: str, arguments: object) -> str:
    """Write the call of a tool as one line."""
    if arguments is None:
        written = ""
    elif isinstance(arguments, str):
        written = arguments
    else:
        written = json.dumps(arguments, ensure_ascii=False, default=_to_plain)
    return f"{name}({written})"


def _to_plain(value: object) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", exclude_none=True) if callable(dump) else str(value)


def is_item(kind: object) -> bool:
    """True if a part of this type also stands alone, as an item of a conversation."""
    return isinstance(kind, str) and (kind in _SILENT or _is_call(kind) or is_result(kind))


def _is_call(kind: str) -> bool:
    return kind in _CALLS or kind.endswith(("_call", "_tool_use"))


def is_result(kind: str) -> bool:
    return kind in _RESULTS or kind.endswith("_call_output")


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool, in a message that holds several."""

    call_id: str | None
    content: Content


@dataclass(slots=True)
class Content:
    """The content of one message, read part by part.

    With `joined`, texts that follow each other are one text: models return theirs in slices. Otherwise each is a line.
    With `keeps_results`, results are part of its text.
    """

    joined: bool = False
    keeps_results: bool = False
    results: list[ToolResult] = field(default_factory=list)
    left_out: bool = False
    _pieces: list[tuple[bool, str]] = field(default_factory=list)
    _references: list[tuple[str, str]] = field(default_factory=list)
    _call_ids: set[str] = field(default_factory=set)

    def read(self, content: object, place: str) -> None:
        if content is None:
            return
        if isinstance(content, str):
            self.say(content)
        elif isinstance(content, list | tuple):
            for index, part in enumerate(content):
                self._read_part(part, f"{place}[{index}]")
        elif value_of(content, "type") is not None:
            self._read_part(content, place)
        else:
            raise InvalidInput(place, f"expected a text or a list of parts, got {type(content).__name__}")

    def say(self, text: str) -> None:
        self._pieces.append((True, text))

    def call(self, call_id: object, name: object, arguments: object, place: str) -> None:
        """Note the call of a tool. LangChain says some twice: in the content, and in `tool_calls`."""
        if not isinstance(name, str) or not name:
            raise InvalidInput(place, "is the call of a tool without a name; give its name")
        if isinstance(call_id, str) and call_id:
            if call_id in self._call_ids:
                return
            self._call_ids.add(call_id)
        try:
            self._pieces.append((False, format_call(name, arguments)))
        except (TypeError, ValueError, RecursionError):
            raise InvalidInput(place, "has arguments that cannot be written as JSON; give them as a text") from None

    def refer(self, kind: str, reference: str) -> None:
        self._references.append((kind, reference))
        self._pieces.append((False, f"[{kind}: {reference}]"))

    @property
    def text(self) -> str:
        """All of it as one text; empty if it holds none."""
        text, sliced = "", False
        for is_text, piece in self._pieces:
            if not (is_text and sliced and self.joined):
                if not piece.strip():
                    continue
                text += "\n" if text and not text.endswith("\n") else ""
            text += piece
            sliced = is_text
        return text if text.strip() else ""

    @property
    def references(self) -> dict[str, str]:
        """References to images, audio and files, as metadata: `image`, `image_2` and so on."""
        found: dict[str, str] = {}
        counts: dict[str, int] = {}
        for kind, reference in self._references[:_MAX_REFERENCES]:
            counts[kind] = counts.get(kind, 0) + 1
            found[kind if counts[kind] == 1 else f"{kind}_{counts[kind]}"] = reference[:MAX_METADATA_CHARS]
        return found

    # --- parts ---

    def _read_part(self, part: object, place: str) -> None:
        if isinstance(part, str):
            self.say(part)
            return
        kind = value_of(part, "type")
        if kind is None and isinstance(value_of(part, "text"), str):
            kind = "text"
        if not isinstance(kind, str):
            raise InvalidInput(place, f"expected a text or a part with a type, got {_description(part)}")
        self._reader_of(kind)(part, kind, place)

    def _reader_of(self, kind: str) -> Callable[[object, str, str], None]:
        if kind in _TEXTS:
            return self._read_text
        if kind in _ATTACHMENTS:
            return self._read_attachment
        if kind == "refusal":
            return self._read_refusal
        if kind == "message":
            return lambda part, _, place: self.read(value_of(part, "content"), f"{place}.content")
        if is_result(kind):
            return self._read_result
        if kind in _SILENT or kind.endswith("_tool_result"):
            return self._leave_out
        return self._read_call if _is_call(kind) else self._refuse

    def _refuse(self, part: object, kind: str, place: str) -> None:
        known = "text, image, audio, video, file, refusal, and calls and results of tools"
        raise InvalidInput(f"{place}.type", f"{kind!r:.60} is no part that can be read; known are {known}")

    def _leave_out(self, part: object, kind: str, place: str) -> None:
        self.left_out = True

    def _read_text(self, part: object, kind: str, place: str) -> None:
        text = value_of(part, "text")
        text = text if isinstance(text, str) else value_of(text, "value")
        if not isinstance(text, str):
            raise InvalidInput(f"{place}.text", f"expected text, got {type(value_of(part, 'text')).__name__}")
        self.say(text)

    def _read_refusal(self, part: object, kind: str, place: str) -> None:
        self.say(str(value_of(part, "refusal") or ""))

    def _read_attachment(self, part: object, kind: str, place: str) -> None:
        reference = reference_to(part)
        if reference is None:
            raise InvalidInput(
                place, f"is a part of type {kind!r} without an address, a name or data; give one of them"
            )
        self.refer(_ATTACHMENTS[kind], reference)

    def _read_call(self, part: object, kind: str, place: str) -> None:
        arguments = next((found for name in _ARGUMENTS if (found := value_of(part, name)) is not None), None)
        name = value_of(part, "name") or kind.removesuffix("_call")
        self.call(value_of(part, "call_id") or value_of(part, "id"), name, arguments, place)

    def _read_result(self, part: object, kind: str, place: str) -> None:
        named = next((name for name in ("content", "output", "result") if value_of(part, name) is not None), "content")
        found = value_of(part, named)
        if self.keeps_results:
            self._read_data(found, f"{place}.{named}")
            return
        call_id = value_of(part, "tool_use_id") or value_of(part, "call_id")
        result = Content(keeps_results=True)
        result._read_data(found, f"{place}.{named}")
        self.results.append(ToolResult(call_id if isinstance(call_id, str) else None, result))

    def _read_data(self, content: object, place: str) -> None:
        """Read the result of a tool. Tools return any data: what is no part is written as JSON."""
        for part, at in _items(content, place):
            if isinstance(part, str) or value_of(part, "type") is not None or isinstance(value_of(part, "text"), str):
                self._read_part(part, at)
            elif part is not None:
                try:
                    self.say(json.dumps(part, ensure_ascii=False, default=_to_plain))
                except (TypeError, ValueError, RecursionError):
                    raise InvalidInput(at, "cannot be written as JSON; give the result as a text") from None


def _items(content: object, place: str) -> Iterator[tuple[object, str]]:
    if isinstance(content, list | tuple):
        yield from ((part, f"{place}[{index}]") for index, part in enumerate(content))
    else:
        yield content, place


def _description(part: object) -> str:
    names = ", ".join(sorted(str(name) for name in part))[:60] if isinstance(part, Mapping) else ""
    return f"a dictionary of {names}" if names else type(part).__name__


def reference_to(part: object) -> str | None:
    """Return where an image, a sound or a file is, else its name or type; None if the part holds nothing."""
    places = [part, *(inner for name in _INNER if not isinstance(inner := value_of(part, name), str | None))]
    for address in _values(places, _ADDRESSES):
        media_type = _data_type(address)
        return _one_line(media_type or address)
    named = next(_values(places, _NAMES), None)
    if named is not None:
        return _one_line(named)
    data = next(_values(places, _DATA), None)
    if data is not None:
        return _one_line(_data_type(data) or "data")
    return "content" if any(value_of(place, "content") for place in places) else None


def _values(places: list[Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        for place in places:
            if isinstance(value := value_of(place, name), str) and value.strip():
                yield value


def _data_type(address: str) -> str | None:
    """Return the media type of a `data:` address, whose data is not kept; None for any other."""
    if address[:5].lower() != "data:":
        return None
    return address[5:_MAX_TYPE_CHARS].partition(",")[0].partition(";")[0] or "data"


def _one_line(text: str) -> str:
    line = " ".join(text[: MAX_REFERENCE_CHARS + 1].split())
    return line if len(line) <= MAX_REFERENCE_CHARS else f"{line[:MAX_REFERENCE_CHARS]}…"
