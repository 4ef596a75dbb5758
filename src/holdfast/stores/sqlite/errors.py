"""Translate SQLite's errors to Holdfast's, and keep the cause."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterator

from holdfast.errors import StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly, StoreUnusable

_PRIMARY_CODE = 0xFF
_FUNCTION_FAILED = "user-defined function raised exception"
_DAMAGED = "{} is damaged; restore it from a backup, or run `holdfast store verify` on it"


def _extended_code(error: sqlite3.Error) -> int:
    return int(getattr(error, "sqlite_errorcode", 0))


def is_busy(error: sqlite3.Error) -> bool:
    code = _extended_code(error) & _PRIMARY_CODE
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def translate_error(error: sqlite3.Error, location: str) -> BaseException:
    # SQLite runs one function of ours, the checksum of a row. Nothing but Ctrl-C makes it fail.
    if str(error) == _FUNCTION_FAILED and threading.current_thread() is threading.main_thread():
        return KeyboardInterrupt()
    code = _extended_code(error) & _PRIMARY_CODE
    if is_busy(error):
        return StoreBusy(f"{location} is being written by another process; nothing was changed, try again")
    # SHMSIZE: the shared-memory file beside the write-ahead log could not grow.
    if code == sqlite3.SQLITE_FULL or _extended_code(error) == sqlite3.SQLITE_IOERR_SHMSIZE:
        return StoreFull(f"no space is left for {location}; nothing was changed, free some and try again")
    if code == sqlite3.SQLITE_READONLY:
        return StoreReadOnly(f"{location} cannot be written; check the permissions of the file and its folder")
    if code == sqlite3.SQLITE_NOTADB:
        return StoreUnusable(f"{location} is not a Holdfast store; give the path of one, or of a new file")
    # The latter quotes the text.
    if code == sqlite3.SQLITE_CORRUPT or str(error).startswith("Could not decode to UTF-8"):
        return StoreCorrupt(_DAMAGED.format(location))
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreUnusable(f"{location} cannot be opened; check that its folder exists and may be read and written")
    return StoreError(f"{location}: {error}; nothing was changed")


@contextlib.contextmanager
def translating(location: str) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise translate_error(error, location) from error
    except UnicodeDecodeError as error:  # of SQLite's own message, which quotes a damaged schema
        raise StoreCorrupt(_DAMAGED.format(location)) from error
