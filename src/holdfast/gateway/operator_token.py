"""The operator token: the configured one, or one in a private file beside the store, which the first start creates.

Being on the same machine proves nothing: a caller without a credential gets nothing, and a server that runs as another
account does not get the token.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from holdfast.domain.location import is_server_url, redact_location
from holdfast.errors import ConfigurationError
from holdfast.gateway.config import is_loopback
from holdfast.private_files import open_private
from holdfast.settings import Settings

SUFFIX = ".operator-token"
_MEMORY = ":memory:"
_TOKEN_BYTES = 32
_MOST_BYTES = 4096
_LISTENS = "0A"  # the state of a socket in /proc/net/tcp
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
# A link may lead to another account's file, and opening a pipe would wait for its writer.
_CAREFULLY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
_CONFIGURE = "configure a token with HOLDFAST_OPERATOR_TOKEN or --operator-token-file; `openssl rand -hex 32` makes one"


def operator_token(settings: Settings, store: str) -> str:
    """Return the configured token, else the one beside the store. The first process that asks creates the file."""
    if settings.operator_token is not None:
        return settings.operator_token.get_secret_value()
    file = token_file(store)
    if file is None:
        raise ConfigurationError(f"{redact_location(store)} has no folder to keep an operator token in; {_CONFIGURE}")
    return read_token(file) or _create_token(file)


def token_file(store: str) -> Path | None:
    """Return the place of the token beside a store; None if the store has no folder of its own."""
    if store == _MEMORY or "://" in store:
        return None
    # Beside the store itself: every link to it leads to the same token.
    return Path(os.path.realpath(store) + SUFFIX)


def read_token(file: Path) -> str | None:
    """Return the token in the file; None if there is no file. A file that others could read or write is refused."""
    try:
        handle = os.open(file, os.O_RDONLY | _CAREFULLY)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ConfigurationError(f"{file} cannot be read: {error.strerror}; remove it, or {_CONFIGURE}") from None
    try:
        _check_private(os.fstat(handle), file)
        token = os.read(handle, _MOST_BYTES).strip()
    finally:
        os.close(handle)
    if not token or not token.isascii():
        raise ConfigurationError(f"{file} holds no token; remove it, and the next start creates one")
    return token.decode("ascii")


def _check_private(found: os.stat_result, file: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise ConfigurationError(f"{file} is no file; remove it, and the next start creates one")
    if not hasattr(os, "geteuid"):  # Windows has no such modes
        return
    if found.st_uid != os.geteuid():
        raise ConfigurationError(f"{file} belongs to another account, which knows the token; remove it or {_CONFIGURE}")
    if found.st_mode & _OTHERS:
        raise ConfigurationError(
            f"{file}: others may read or change it; if nobody has, `chmod 600 {file}`, else remove it, and the next"
            " start creates another token"
        )


def _create_token(file: Path) -> str:
    """Create the file with a random token. If another process was first, return its token."""
    beside = file.with_name(f"{file.name}.{secrets.token_hex(8)}.new")
    try:
        with open(beside, "x", encoding="ascii", opener=open_private) as made:
            made.write(f"{secrets.token_hex(_TOKEN_BYTES)}\n")
            made.flush()
            os.fsync(made.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(beside, file)  # never overwrites, and the file appears with its content
    except OSError as error:
        raise ConfigurationError(
            f"no operator token can be created at {file}: {error.strerror}; make the folder writable, or {_CONFIGURE}"
        ) from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink()
    token = read_token(file)
    if token is None:
        raise ConfigurationError(f"{file} was removed just now; start again, or {_CONFIGURE}")
    return token


def find_local_token(url: str, settings: Settings) -> SecretStr | None:
    """Return the operator token for a server on this machine: the configured one, or that beside the store.

    None if the server is elsewhere, or runs as another account: anyone may listen on a loopback address.
    """
    parts = urlsplit(url)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not is_loopback(parts.hostname or "") or not _listens_as_us(port):
        return None
    if settings.operator_token is not None:
        return settings.operator_token
    default: str = Settings.model_fields["store"].default
    file = token_file(default if is_server_url(settings.store) else settings.store)
    token = None if file is None else read_token(file)
    return None if token is None else SecretStr(token)


def _listens_as_us(port: int) -> bool:
    """False if another account than ours or root listens on the port. True where the system does not say who does."""
    tables = [table for name in ("tcp", "tcp6") if (table := Path("/proc/net", name)).exists()]
    rows = [line.split() for table in tables for line in table.read_text("ascii").splitlines()[1:]]
    owners = {row[7] for row in rows if row[3] == _LISTENS and row[1].endswith(f":{port:04X}")}
    return owners <= {str(os.geteuid()), "0"}
