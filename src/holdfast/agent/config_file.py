"""Read a config file: JSON with `//` comments, section by section.

An error names the file and the place in it, never the value: any value may be a key in the wrong place.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from holdfast.domain.checks import MAX_SECONDS, checked_real, checked_seconds, checked_whole
from holdfast.errors import ConfigurationError, InvalidInput

T = TypeVar("T")
MAX_FILE_BYTES = 1_000_000
# Matches a comment, or a string, in which // is no comment.
_STRING_OR_COMMENT = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*')
# Names that an error may show: a typo looks like this, a key in the wrong place does not.
_PLAIN_NAME = re.compile(r"[A-Za-z_]{1,40}")


class ConfigSection:
    """One object of the file. Values are read by name; a setting that nothing reads is an error."""

    def __init__(self, source: Path | None, path: str, values: dict[str, Any], *, confined: bool = False) -> None:
        """A `confined` file may only name files in its own folder: it may come from someone else."""
        self._source = source
        self._confined = confined
        self._path = path
        self._values = values

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def allow_only(self, names: Iterable[str]) -> None:
        """Refuse settings other than `names`."""
        known = list(names)
        for name in self._values:
            if name in known:
                continue
            shown = f"`{name}`" if _PLAIN_NAME.fullmatch(name) else "a name that is not a plain word"
            near = difflib.get_close_matches(name.replace("_", ""), known, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(known)}"
            raise self.setting_error("", f"there is no setting {shown}; {hint}")

    def section(self, name: str) -> ConfigSection:
        value = self._values.get(name, {})
        if not isinstance(value, dict):
            raise self.setting_error(name, "must be an object in braces")
        return ConfigSection(self._source, self._qualify_name(name), value, confined=self._confined)

    def text(self, name: str, default: str = "") -> str:
        value = self._values.get(name, default)
        if not isinstance(value, str):
            raise self.setting_error(name, "must be a text in quotes")
        return value

    def texts(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        value = self._values.get(name, default)
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise self.setting_error(name, "must be a list of texts in brackets")
        return tuple(value)

    def choice(self, name: str, known: Iterable[str], default: str) -> str:
        choices = list(known)
        if name in self._values and self._values[name] not in choices:
            raise self.setting_error(name, f"must be one of {', '.join(choices)}")
        return str(self._values.get(name, default))

    def integer(self, name: str, default: int, least: int, most: int) -> int:
        return self.validate(
            name,
            lambda: checked_whole(self._values.get(name, default), name, least, most),
            f"must be a whole number from {least:,} to {most:,}",
        )

    def seconds(self, name: str, default: float) -> float:
        return self.validate(
            name,
            lambda: checked_seconds(self._values.get(name, default), name),
            f"must be a number of seconds above 0 and up to {MAX_SECONDS:,.0f}",
        )

    def share(self, name: str) -> float | None:
        """Return a number from 0 to 1, or None if there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        return self.validate(name, lambda: checked_real(value, name, 0, 1), "must be a number from 0 to 1")

    def path(self, name: str) -> Path | None:
        """Return a path, relative to the config file's folder."""
        text = self.text(name)
        if not text.strip():
            return None
        if "\0" in text:
            raise self.setting_error(name, "holds a NUL character")
        folder = self._source.parent if self._source else Path.cwd()
        if self._confined and not (folder / text).resolve().is_relative_to(folder.resolve()):
            raise self.setting_error(
                name,
                "names a file outside of this folder; move it here, or choose this configuration yourself, with"
                " HOLDFAST_CONFIG_PATH or HOLDFAST_HOME",
            )
        return folder / text

    def validate(self, name: str, check: Callable[[], T], problem: str | None = None) -> T:
        """Run a check. Its refusal is raised with the check's own text, or with `problem`, which shows no value."""
        try:
            return check()
        except InvalidInput as error:
            reason = problem or error.problem
        raise self.setting_error(name, reason)

    def setting_error(self, name: str, problem: str) -> ConfigurationError:
        """Build the error for a setting; the caller raises it."""
        place = ": ".join(part for part in (str(self._source or ""), self._qualify_name(name)) if part)
        return ConfigurationError(f"{place}: {problem}")

    def _qualify_name(self, name: str) -> str:
        return ".".join(part for part in (self._path, name) if part)


def read_sections(source: Path, *, confined: bool) -> ConfigSection:
    """Read the whole file as one section."""
    return ConfigSection(source, "", _parse_json(source, _content(source)), confined=confined)


def _content(source: Path) -> str:
    try:
        with source.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigurationError(f"{source}: cannot be read ({error.strerror})") from None
    if len(content) > MAX_FILE_BYTES:
        raise ConfigurationError(f"{source}: is larger than a config file may be ({MAX_FILE_BYTES:,} bytes)")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        problem = "is not UTF-8 text; save it as UTF-8"
    raise ConfigurationError(f"{source}: {problem}")


def _parse_json(source: Path, content: str) -> dict[str, Any]:
    # Comments become blanks, so that the line and column of an error stay right.
    bare = _STRING_OR_COMMENT.sub(lambda found: found[0] if found[0][0] == '"' else " " * len(found[0]), content)
    try:
        found = json.loads(bare, object_pairs_hook=_reject_duplicates)
    except json.JSONDecodeError as error:
        problem = f"line {error.lineno}, column {error.colno}: is not JSON here ({error.msg[:60]})"
    except InvalidInput as error:
        problem = error.problem
    except (ValueError, RecursionError):
        problem = "has a number that is too long, or is nested too deeply"
    else:
        if isinstance(found, dict):
            return found
        problem = "must be one object in braces"
    # Raised outside `except`: the caught error holds the whole file.
    raise ConfigurationError(f"{source}: {problem}")


def _reject_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            shown = f"`{name}`" if _PLAIN_NAME.fullmatch(name) else "a setting"
            raise InvalidInput("config", f"has {shown} twice in one place; keep one")
        found[name] = value
    return found
