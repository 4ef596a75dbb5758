"""The only module that resolves references to secrets. It fails closed.

`env://NAME` is an environment variable with the prefix from the settings; `file://PATH` is a file in the secrets
folder. No error shows a value, nor a reference that might be one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

from holdfast.domain.secret import Secret
from holdfast.domain.secret_references import ENV, FILE, NO_REFERENCE, is_reference
from holdfast.errors import InvalidConfiguration, InvalidInput, SecretUnavailable

MAX_SECRET_BYTES = 64 * 1024
# Holdfast's own settings files are in the same folder; bindings must not read the service's credentials.
_OWN = "holdfast_"
_NO_FOLDER = "no secrets folder is configured; set HOLDFAST_SECRETS_DIR"


class SecretResolver:
    """Implements `ports.Secrets`. `variable` reads an environment variable, None if it is not set."""

    def __init__(self, variable: Callable[[str], str | None], prefix: str, folder: Path | None) -> None:
        self._variable = variable
        self._prefix = prefix
        self._folder = folder

    def resolve(self, reference: str, field: str) -> Secret:
        if not is_reference(reference):
            raise SecretUnavailable(f"{field}: is not a reference to a secret; write it as {ENV}NAME or {FILE}PATH")
        if reference.startswith(ENV):
            found = self._read_variable(reference.removeprefix(ENV), field)
        else:
            found = self._read_file(reference.removeprefix(FILE), field)
        try:
            return Secret(found, field)
        except InvalidInput as error:
            problem = f"{field}: the secret that it refers to is unusable: {error.problem}"
        # Raised outside the except block, so that nothing of the secret is chained.
        raise SecretUnavailable(problem)

    def check(self, reference: str, field: str) -> None:
        """Check only the reference's form: the variable or file may be created later."""
        if not is_reference(reference):
            problem: str | None = NO_REFERENCE
        elif reference.startswith(ENV):
            problem = self._variable_problem(reference.removeprefix(ENV))
        else:
            problem = self._file_problem(reference.removeprefix(FILE))
        if problem is not None:
            raise InvalidConfiguration(field, problem)

    def _variable_problem(self, name: str) -> str | None:
        if self._prefix and name.startswith(self._prefix) and name != self._prefix:
            return None
        prefix = f"{self._prefix!r:.80} (HOLDFAST_SECRET_ENV_PREFIX)"
        return f"may only refer to variables whose names begin with {prefix}"

    def _file_problem(self, path: str) -> str | None:
        if self._folder is None:
            return _NO_FOLDER
        try:
            folder = self._folder.resolve()
            found = (folder / path).resolve()
        except (OSError, ValueError, RuntimeError):
            return "the file that it refers to has an invalid path"
        if found == folder or not found.is_relative_to(folder):
            return "the file that it refers to is outside HOLDFAST_SECRETS_DIR"
        if self._is_own(found) or self._is_own(folder / path):
            return "the file that it refers to holds one of Holdfast's own settings, which bindings may not read"
        return None

    def _read_variable(self, name: str, field: str) -> str:
        if (problem := self._variable_problem(name)) is not None:
            raise SecretUnavailable(f"{field}: {problem}")
        found = self._variable(name)
        if not found:
            raise SecretUnavailable(f"{field}: the variable {name:.80} is not set; set it where Holdfast runs")
        return found

    def _read_file(self, path: str, field: str) -> str:
        if self._folder is None:
            raise SecretUnavailable(f"{field}: {_NO_FOLDER}")
        try:
            folder = self._folder.resolve(strict=True)
            # Compared after resolving `..` and symbolic links.
            found = (folder / path).resolve(strict=True)
            if not found.is_relative_to(folder):
                problem = "is outside HOLDFAST_SECRETS_DIR"
            elif self._is_own(found) or self._is_own(folder / path):
                problem = "holds one of Holdfast's own settings, which bindings may not read"
            else:
                return _read_content(found)
        except UnicodeDecodeError:
            problem = "is not UTF-8 text"
        except _UnusableFile as unfit:
            problem = str(unfit)
        except (OSError, ValueError, RuntimeError):
            problem = "does not exist or cannot be read"
        raise SecretUnavailable(f"{field}: the file that it refers to {problem}")

    def _is_own(self, path: Path) -> bool:
        name = path.name.lower()
        return name.startswith(_OWN) and not name.startswith(self._prefix.lower() or "\0")


class _UnusableFile(Exception):
    """The file cannot hold a secret."""


def _read_content(path: Path) -> str:
    """Read the file without its trailing line end. Pipes are refused, since reading one may never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise _UnusableFile("is not a regular file")
    with open(path, "rb", opener=_open_nonblocking) as file:
        content: bytes = file.read(MAX_SECRET_BYTES + 1)
    if len(content) > MAX_SECRET_BYTES:
        raise _UnusableFile(f"is larger than {MAX_SECRET_BYTES // 1024} KiB")
    found = content.decode("utf-8").rstrip("\r\n")
    if not found:
        raise _UnusableFile("is empty")
    return found


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0))
