"""Splits manuals in reStructuredText and Markdown at their headings."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_UNDERLINE = re.compile(r"([=\-~^\"'`+*#:.<>_])\1{2,}")
_MARKDOWN_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*")
_FENCE = re.compile(r"\s*(```|~~~)")
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
# Labels and index entries repeat the heading; the others are not for readers.
_UNSEEN = re.compile(r"\s*\.\. (_[^:]*:|(index|contents|toctree|currentmodule|module|highlight|include|meta)::)")
# A directive before a heading that names the same thing.
_ANNOUNCED = re.compile(r"\.\. [\w:-]+:: \S+")
_ROLE = re.compile(r":[\w:+-]+:`~?([^`<]+?)\s*(?:<[^`]*>)?`")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)|`([^`<]+?)\s*<[^`]*>`_+")
_TAG = re.compile(r"<[^>]*>|\{[#:][^}]*\}")
_GENERIC = frozenset(
    """a simple example|a note|about this document|additional resources|api reference|basic usage|code examples|
    command line|command line options|for example|further information|further reading|getting started|how it works|
    known issues|more information|next steps|other notes|other options|quick start|read more|related topics|
    see also|source code|table of contents|what's next|what next|where to go from here|where to go next"""
    .replace("\n    ", "").split("|")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """A text and the heading above it, which is empty before the first one."""

    heading: str
    text: str


def sections(text: str, *, markdown: bool) -> list[Section]:
    """Split at every heading of any level. The heading is not part of the text."""
    lines = _FRONT_MATTER.sub("", text.replace("\r\n", "\n")).split("\n")
    found: list[Section] = []
    heading, start = "", 0
    for title, first, after in _headings(lines, markdown):
        found.append(Section(heading, _readable(lines[start:first])))
        heading, start = title, after
    found.append(Section(heading, _readable(lines[start:])))
    return [section for section in found if section.text]


def asks(heading: str) -> bool:
    """True if the heading describes its text. A single plain word does not; an identifier does."""
    plain = re.sub(r"\W+$", "", heading).casefold()
    if not re.search(r"[^\W\d_]{2}", heading) or plain in _GENERIC:
        return False
    return " " in heading or bool(re.search(r"[\w)][_.:(\d]|[a-z][A-Z]|[A-Z]{2}|^[@$%-]", heading))


def _headings(lines: Sequence[str], markdown: bool) -> Iterator[tuple[str, int, int]]:
    """Each heading with its first line and the line after it."""
    fenced = False
    for number, line in enumerate(lines):
        following = lines[number + 1] if number + 1 < len(lines) else ""
        if markdown and _FENCE.match(line):
            fenced = not fenced
        elif fenced or not line.strip():
            continue
        elif markdown and (found := _MARKDOWN_HEADING.fullmatch(line)):
            yield _plain(found[1]), number, number + 1
        elif _underlined(line, following):
            overlined = number > 0 and lines[number - 1].rstrip() == following.rstrip()
            yield _plain(line), number - overlined, number + 2


def _underlined(line: str, following: str) -> bool:
    if not _UNDERLINE.fullmatch(following.rstrip()) or _UNDERLINE.fullmatch(line.strip()):
        return False
    return len(following.rstrip()) >= len(line.rstrip()) and line.strip()[0] not in "|+.>"


def _plain(heading: str) -> str:
    heading = _ROLE.sub(r"\1", _LINK.sub(lambda found: found[1] or found[2] or "", heading))
    heading = _TAG.sub("", heading).replace("`", "").replace("**", "").replace("\\", "")
    return " ".join(re.sub(r"^\s*[\dIVX]+[.)]\s+", "", heading).strip(" ¶#").split())


def _readable(lines: Sequence[str]) -> str:
    kept: list[str] = []
    hidden_indent: int | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if hidden_indent is not None and (not line.strip() or indent > hidden_indent):
            continue
        hidden_indent = indent if _UNSEEN.match(line) else None
        if hidden_indent is None:
            kept.append(line.rstrip())
    while kept and (not kept[-1] or _ANNOUNCED.fullmatch(kept[-1].strip())):
        kept.pop()
    text = _ROLE.sub(r"`\1`", "\n".join(kept))
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n")
