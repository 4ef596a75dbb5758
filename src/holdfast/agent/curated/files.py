"""The two files of curated memory on disk: locked, re-read, validated, and replaced as a whole.

One lock (`.lock`) guards both files across processes. Under it, a change reads the current files; a new text is written
to a temporary file, synced, and renamed over the old one, so that a reader sees the old text or the new one and a crash
leaves one of them. A change of both files is first written to a write-ahead log (`.pending.json`): from then on it will
be completed, by this process or by the next one that takes the lock.

People may edit the files by hand. A file that cannot be understood is never overwritten (`_problem`); one copy of it is
kept, so that a repair can be undone. Links are refused: a folder that came from elsewhere must not be able to put any
other file of this machine into a prompt.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import random
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from holdfast.agent.curated.entries import (
    Change,
    CuratedTarget,
    Entries,
    apply_change,
    combined_threat,
    join_entries,
    parse_entries,
    usage,
)
from holdfast.errors import (
    ConfigurationError,
    InvalidInput,
    InvalidText,
    OutcomeUnknown,
    StoreBusy,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnusable,
)
from holdfast.private_files import FILE_MODE, make_private_folder, open_private

MEMORY_CHARS = 2_200
USER_CHARS = 1_375
MAX_FILE_BYTES = 1_048_576
LOCK_SECONDS = 10.0
READ_SECONDS = 1.0
_LOCK = ".lock"
_PENDING = ".pending.json"
_BESIDE = ".new"
_UNTEXTUAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_CONFLICT = re.compile(r"^(?:<{7}|={7}|>{7})(?: |$)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class CuratedFile:
    """The entries of one file, or the problem that prevents its use and any write to it."""

    target: CuratedTarget
    limit: int
    entries: Entries = ()
    problem: str = ""
    digest: str = field(default="", repr=False, compare=False)
    """SHA-256 of the bytes that this was read from."""

    @property
    def usage(self) -> str:
        return usage(self.entries, self.limit)

    @property
    def excess(self) -> int:
        """The number of characters over the limit."""
        return max(0, len(join_entries(self.entries)) - self.limit)


class MemoryStore:
    """`MEMORY.md` and `USER.md` in one folder, which the first change creates."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        memory_chars: int = MEMORY_CHARS,
        user_chars: int = USER_CHARS,
        lock_seconds: float = LOCK_SECONDS,
    ) -> None:
        if min(memory_chars, user_chars) < 1:
            raise ConfigurationError("the limits of curated memory must be at least one character")
        self.folder = Path(folder)
        self._limits = {CuratedTarget.MEMORY: memory_chars, CuratedTarget.USER: user_chars}
        self._lock_seconds = lock_seconds

    def read(self) -> Mapping[CuratedTarget, CuratedFile]:
        """Read both files in a state that one change left. If the lock cannot be taken, each file as it is."""
        if not self.folder.is_dir():
            return {target: CuratedFile(target, limit) for target, limit in self._limits.items()}
        with contextlib.ExitStack() as stack:
            # Missing write access, or a lock that is held too long, must not prevent reading.
            with contextlib.suppress(OSError, StoreError):
                stack.enter_context(self._hold_lock(min(self._lock_seconds, READ_SECONDS)))
            return {target: self._load_file(target) for target in CuratedTarget}

    def change(self, changes: Sequence[Change]) -> tuple[Mapping[CuratedTarget, CuratedFile], tuple[str, ...]]:
        """Apply all changes, or none and raise why. Return the resulting files, and what each change did."""
        with _translate_errors():
            _make_folder(self.folder)
            with self._hold_lock(self._lock_seconds):
                return self._apply_changes(changes)

    def _apply_changes(self, changes: Sequence[Change]) -> tuple[Mapping[CuratedTarget, CuratedFile], tuple[str, ...]]:
        before = {
            target: self._load_writable(target) for target in CuratedTarget if any(o.target is target for o in changes)
        }
        entries = {target: held.entries for target, held in before.items()}
        done = []
        for change in changes:
            entries[change.target], did = apply_change(entries[change.target], change)
            done.append(did)
        after = {target: CuratedFile(target, self._limits[target], entries[target]) for target in before}
        written = {target: held for target, held in after.items() if held != before[target]}
        for target, held in written.items():
            if held.excess:
                raise InvalidInput(
                    "content",
                    f"{target.file} would have {held.limit + held.excess:,} characters, and {held.limit:,} fit. "
                    "Nothing was written; shorten it, or replace or remove entries in the same call (operations)",
                )
            if why := combined_threat(before[target].entries, held.entries):
                raise InvalidText(
                    "content", f"is refused: below the entries that are there, it {why}; keep plain facts"
                )
            if before[target].excess:
                self._keep_copy(target)
        texts = {target: f"{join_entries(held.entries)}\n" if held.entries else "" for target, held in written.items()}
        self._write(texts, {target: before[target].digest for target in texts})
        return after, tuple(done)

    # --- reading -----------------------------------------------------------------------------------------------------

    def _load_file(self, target: CuratedTarget) -> CuratedFile:
        limit = self._limits[target]
        try:
            raw = self._current(target.file)
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            return CuratedFile(target, limit, problem=f"it is not UTF-8 at byte {error.start:,}")
        except OSError as error:
            return CuratedFile(target, limit, problem=_why_unreadable(error))
        entries = parse_entries(text)
        return (
            CuratedFile(target, limit, entries, digest=_digest(raw))
            if not (why := _problem(text, entries, limit))
            else CuratedFile(target, limit, (), why)
        )

    def _load_writable(self, target: CuratedTarget) -> CuratedFile:
        held = self._load_file(target)
        if not held.problem:
            return held
        copy = self._keep_copy(target)
        kept = f"a copy is kept as {copy}; " if copy else ""
        raise StoreUnusable(
            f"{target.file} was not written to, since {held.problem}. Nothing in it was changed; {kept}"
            f"put it right by hand (entries divided by lines that are only '§'), or move it away"
        )

    def _current(self, name: str) -> bytes:
        """Return a file's bytes, with a pending change from a crash applied."""
        raw, change = self._raw(name), _decode_pending(self._raw(_PENDING)).get(name)
        return change["text"].encode() if change and change["was"] == _digest(raw) else raw

    def _raw(self, name: str) -> bytes:
        """Return a file's bytes, empty if it is missing. `OSError` if it is no regular file, or is too large."""
        try:
            # Non-blocking: opening a pipe would wait.
            descriptor = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise OSError(errno.EINVAL, "not a plain file")
            raw = file.read(MAX_FILE_BYTES + 1)
        if len(raw) > MAX_FILE_BYTES:
            raise OSError(errno.EFBIG, "too large")
        return raw

    def _keep_copy(self, target: CuratedTarget) -> str:
        """Copy the current file, unless a copy exists. Return the copy's name, empty if the file cannot be read."""
        try:
            raw = self._raw(target.file)
        except OSError:
            return ""
        digest = _digest(raw)[:8]
        if copies := sorted(self.folder.glob(f"{target.file}.bak.*.{digest}")):
            return copies[0].name
        name = f"{target.file}.bak.{datetime.now(UTC):%Y%m%dT%H%M%SZ}.{digest}"
        self._put(name, raw)
        return name

    # --- writing, under the lock -------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _hold_lock(self, seconds: float) -> Iterator[None]:
        descriptor = open_private(self.folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW)
        try:
            _wait_for(descriptor, seconds)
            self._finish_pending()
            yield
        finally:
            os.close(descriptor)

    def _write(self, texts: Mapping[CuratedTarget, str], was: Mapping[CuratedTarget, str]) -> None:
        """`was` has the digests of what was read: a hand edit takes no lock, and must not be lost."""
        if len(texts) < 2:
            for target, text in texts.items():
                self._put(target.file, text.encode(), was[target])
            return
        for target in texts:
            self._check(target.file, was[target])
        pending = {target.file: {"was": was[target], "text": text} for target, text in texts.items()}
        self._put(_PENDING, json.dumps(pending).encode())
        try:
            self._finish_pending()
            edited = [target.file for target, text in texts.items() if self._raw(target.file) != text.encode()]
        except OSError as error:
            raise _outcome_unknown(error) from error
        if edited:
            raise OutcomeUnknown(f"{' and '.join(edited)} was edited by hand just now and keeps the edit; look again")

    def _finish_pending(self) -> None:
        """Complete the pending change. A file that was edited by hand since keeps the edit."""
        for name, change in _decode_pending(self._raw(_PENDING)).items():
            if _digest(self._raw(name)) == change["was"]:
                self._put(name, change["text"].encode())
        with contextlib.suppress(FileNotFoundError):
            (self.folder / _PENDING).unlink()
            # If it came back after a power cut, it could undo later, acknowledged changes.
            _sync(self.folder)

    def _check(self, name: str, was: str) -> None:
        if _digest(self._raw(name)) != was:
            raise StoreBusy(f"{name} was edited by hand just now. Nothing was written; try again")

    def _put(self, name: str, content: bytes, was: str | None = None) -> None:
        """Replace a file's content durably, or leave it as it is. Refuses if its digest is no longer `was`."""
        path, beside = self.folder / name, self.folder / _BESIDE
        # The lock is held, so an existing temporary file is left over from a crash.
        beside.unlink(missing_ok=True)
        try:
            mode = stat.S_IMODE(path.lstat().st_mode)
        except FileNotFoundError:
            mode = FILE_MODE
        try:
            with open(beside, "xb", opener=open_private) as file:
                file.write(content)
                file.flush()
                os.fchmod(file.fileno(), mode)
                os.fsync(file.fileno())
            # Checked after the slow sync, so that only the moment before the rename is unguarded.
            if was is not None:
                self._check(name, was)
            os.replace(beside, path)
        except (OSError, StoreBusy):
            beside.unlink(missing_ok=True)
            raise
        try:
            _sync(self.folder)
        except OSError as error:
            raise _outcome_unknown(error) from error


def _make_folder(folder: Path) -> None:
    """Create the folder and its parents, as durably as the files in it."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        make_private_folder(folder)
        _sync(folder.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _problem(text: str, entries: Entries, limit: int) -> str:
    """Return why a text is not a plain list of entries, so that rewriting it might destroy something; else empty."""
    if found := _UNTEXTUAL.search(text):
        return f"it holds a control character in line {text.count(chr(10), 0, found.start()) + 1:,}"
    if found := _CONFLICT.search(text):
        return f"it holds an unresolved merge in line {text.count(chr(10), 0, found.start()) + 1:,}"
    if parse_entries(join_entries(entries)) != entries:
        return "its entries would not be the same once they were written again"
    for number, entry in enumerate(entries, 1):
        if len(entry) > limit:
            return f"its entry {number} alone has {len(entry):,} characters, and {limit:,} fit in all"
    return ""


def _why_unreadable(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it is a link, and only the file itself is used"
    if error.errno == errno.EFBIG:
        return f"it is larger than {MAX_FILE_BYTES:,} bytes"
    return f"it cannot be read ({error.strerror})"


def _wait_for(descriptor: int, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreBusy(
                    f"another process has held curated memory for {seconds:g} seconds. Nothing was written; try again"
                ) from None
        time.sleep(random.uniform(0.0005, 0.005))  # noqa: S311 - jitter, not a secret


def _decode_pending(raw: bytes) -> dict[str, dict[str, str]]:
    """Decode the pending change of both files: per file, the digest that it applies to, and the new text."""
    if not raw:
        return {}
    try:
        found = {target.file: json.loads(raw)[target.file] for target in CuratedTarget}
        return {name: {"was": str(change["was"]), "text": str(change["text"])} for name, change in found.items()}
    except (ValueError, KeyError, TypeError):
        return {}  # the log is renamed into place whole, so this one was never acknowledged


def _digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def _outcome_unknown(error: OSError) -> OutcomeUnknown:
    return OutcomeUnknown(
        f"the disk failed ({error.strerror}), and it is not known whether the change was saved; look again"
    )


@contextlib.contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate disk errors to store errors."""
    try:
        yield
    except OSError as error:
        kind: type[StoreError] = StoreError
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            kind = StoreFull
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            kind = StoreReadOnly
        raise kind(f"curated memory could not be written ({error.strerror})") from error
