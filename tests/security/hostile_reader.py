"""Stands in for pypdf in the process that reads documents, and attacks its parent by raw system calls and from Python.

Its "document" names the targets; its "text" has one line per attack: name, whether it succeeded, and the error number.
What needs ctypes' own calls is prepared at import: they are refused later, but native code would not need them.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

_COLUMN = ("x86_64", "aarch64").index(os.uname().machine)
_NUMBERS = {
    "open": (2, None), "openat": (257, 56), "openat2": (437, 437), "creat": (85, None), "memfd_create": (319, 279),
    "mkdirat": (258, 34), "unlinkat": (263, 35), "renameat2": (316, 276), "linkat": (265, 37), "symlinkat": (266, 36),
    "truncate": (76, 45), "mknodat": (259, 33), "fchmodat": (268, 53), "fork": (57, None), "vfork": (58, None),
    "clone": (56, 220), "clone3": (435, 435), "execve": (59, 221), "execveat": (322, 281), "kill": (62, 129),
    "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138), "ptrace": (101, 117), "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438), "pidfd_open": (434, 434), "socket": (41, 198),
    "socketpair": (53, 199), "io_uring_setup": (425, 425), "exit_group": (231, 94),
}  # fmt: skip
_libc = ctypes.CDLL(None)
_raw = _libc.syscall
_raw.restype = ctypes.c_long
_raw.argtypes = [ctypes.c_long] * 7
_errno = _libc.__errno_location
_errno.restype = ctypes.POINTER(ctypes.c_int)
_taken = ctypes.create_string_buffer(4096)
_TAKEN_AT = ctypes.addressof(_taken)
_HERE = -100
_SEIZE = 0x4206  # traces without stopping, unlike an attach
_MOST_CALLS = 512
# Answers of the kernel's own probes in x86_64, which pass every filter and end a process that makes them itself.
_PROBES = {335, 336} if _COLUMN == 0 else set()

Attack = Callable[[], Any]


def at(value: bytes) -> int:
    """Return the address of the bytes, which end with a zero."""
    return id(value) + bytes.__basicsize__ - 1


def call(name: str | int, *arguments: int) -> tuple[int, int]:
    number = name if isinstance(name, int) else _NUMBERS[name][_COLUMN]
    if number is None:
        return -1, 38  # this machine has no such call
    _errno().contents.value = 0
    result = _raw(number, *arguments, *[0] * (6 - len(arguments)))
    return result, _errno().contents.value


def file_attacks(target: dict[str, Any]) -> Iterator[tuple[str, Attack]]:
    parent = target["parent"]
    paths = {
        "store": target["store"], "users": "/etc/passwd", "root": "/", "environment": f"/proc/{parent}/environ",
        "memory": f"/proc/{parent}/mem", "maps": f"/proc/{parent}/maps", "own environment": "/proc/self/environ",
        "descriptors": f"/proc/{parent}/fd", "kernel": "/proc/version", "null": "/dev/null",
    }  # fmt: skip
    how = struct.pack("=QQQ", 0, 0, 0)
    for what, path in paths.items():
        name = path.encode()
        yield f"file open {what}", lambda name=name: call("open", at(name))
        yield f"file openat {what}", lambda name=name: call("openat", _HERE, at(name))
        yield f"file openat2 {what}", lambda name=name: call("openat2", _HERE, at(name), at(how), len(how))
        yield f"file python {what}", lambda path=path: os.open(path, os.O_RDONLY)


def write_attacks(target: dict[str, Any]) -> Iterator[tuple[str, Attack]]:
    store, new = target["store"].encode(), (target["folder"] + "/new").encode()
    flags = os.O_WRONLY | os.O_CREAT
    yield "write openat", lambda: call("openat", _HERE, at(new), flags, 0o600)
    yield "write openat store", lambda: call("openat", _HERE, at(store), os.O_WRONLY)
    yield "write creat", lambda: call("creat", at(new), 0o600)
    yield "write mkdirat", lambda: call("mkdirat", _HERE, at(new), 0o700)
    yield "write symlinkat", lambda: call("symlinkat", at(store), _HERE, at(new))
    yield "write linkat", lambda: call("linkat", _HERE, at(store), _HERE, at(new))
    yield "write renameat2", lambda: call("renameat2", _HERE, at(store), _HERE, at(new))
    yield "write mknodat", lambda: call("mknodat", _HERE, at(new), 0o10600)
    yield "write truncate", lambda: call("truncate", at(store), 0)
    yield "write unlinkat", lambda: call("unlinkat", _HERE, at(store))
    yield "write python", lambda: os.open(target["folder"] + "/new", flags)
    yield "mode fchmodat", lambda: call("fchmodat", _HERE, at(store), 0o777)


def start_attacks() -> Iterator[tuple[str, Attack]]:
    shell = b"/bin/sh"
    for name in ("fork", "vfork", "clone", "clone3"):
        yield f"start {name}", lambda name=name: call(name, 17)
    yield "start execve", lambda: call("execve", at(shell))
    yield "start execveat", lambda: call("execveat", _HERE, at(shell))
    yield "start python", lambda: subprocess.run(["/bin/sh", "-c", ""])
    yield "start python fork", os.fork


def reach_attacks(target: dict[str, Any]) -> Iterator[tuple[str, Attack]]:
    parent, secret = target["parent"], target["secret_at"]
    here, there = struct.pack("@PN", _TAKEN_AT, 16), struct.pack("@PN", secret, 16)
    for sign in (0, 10):
        yield f"signal kill {sign}", lambda sign=sign: call("kill", parent, sign)
        yield f"signal tgkill {sign}", lambda sign=sign: call("tgkill", parent, parent, sign)
    yield "signal group", lambda: call("kill", -target["group"], 0)
    yield "signal python", lambda: os.kill(parent, 0) or 0
    yield "memory process_vm_readv", lambda: call("process_vm_readv", parent, at(here), 1, at(there), 1)
    yield "memory process_vm_writev", lambda: call("process_vm_writev", parent, at(here), 1, at(there), 1)
    yield "memory ptrace", lambda: call("ptrace", _SEIZE, parent)
    yield "memory pidfd", lambda: call("pidfd_getfd", call("pidfd_open", parent)[0], 0)


def call_attacks() -> Iterator[tuple[str, Attack]]:
    for family, kind in ((1, 1), (1, 2), (2, 1), (2, 2), (10, 1), (16, 3), (17, 3), (40, 1)):
        yield f"socket {family} {kind}", lambda family=family, kind=kind: call("socket", family, kind)
    yield "socket pair", lambda: call("socketpair", 1, 1, 0, _TAKEN_AT)
    yield "socket python", lambda: socket.socket().fileno()
    yield "call io_uring_setup", lambda: call("io_uring_setup", 1, _TAKEN_AT)
    yield "call memfd_create", lambda: call("memfd_create", _TAKEN_AT)


def attempt(attack: Attack) -> tuple[bool, int]:
    try:
        result = attack()
    except OSError as error:
        return False, error.errno or -1
    except Exception:  # noqa: BLE001 - it did not succeed, whatever stopped it
        return False, -1
    result, number = result if isinstance(result, tuple) else (result, 0)
    if result == 0 and attack is os.fork:
        os._exit(0)
    return result >= 0, number


def other_calls(allowed: list[int]) -> list[int]:
    """Return the system calls that exist for this process beside the allowed ones."""
    numbers = [number for number in range(_MOST_CALLS) if number not in allowed and number not in _PROBES]
    numbers += [0x40000000 | number for number in range(_MOST_CALLS)]  # of another convention for the same processor
    return [number for number in numbers if call(number) != (-1, 1)]


def open_descriptors() -> list[int]:
    """Return the open descriptors beside the standard streams."""
    reading, bad = (0, 63)[_COLUMN], 9
    return [number for number in range(3, 256) if call(reading, number, _TAKEN_AT, 0)[1] != bad]


def attack_all(target: dict[str, Any], groups: list[str]) -> dict[str, tuple[bool, int]]:
    attacks = [*file_attacks(target), *write_attacks(target), *start_attacks(), *reach_attacks(target), *call_attacks()]
    return {name: attempt(attack) for name, attack in attacks if name.partition(" ")[0] in groups}


# --- what the reader of PDF uses --------------------------------------------------------------------------------------


class PyPdfError(Exception): ...


class DependencyError(Exception): ...


class PasswordType: ...


class DictionaryObject(dict[str, Any]): ...


class ArrayObject(list[Any]): ...


class Page:
    def __init__(self, text: str) -> None:
        self.extract_text = lambda: text


class PdfReader:
    is_encrypted = False
    metadata = None

    def __init__(self, stream: Any) -> None:
        descriptors = open_descriptors()  # before an attack may open some
        found = re.search(rb"\{.*\}", stream.read())
        assert found is not None
        target = json.loads(found[0])
        done = attack_all(target, target["groups"])
        lines = [f"[{name}|{int(succeeded)}|{number}]" for name, (succeeded, number) in done.items()]
        if target["allowed"]:
            lines.append(f"[other calls|{len(other_calls(target['allowed']))}|0]")
        lines.append(f"[descriptors|{len(descriptors)}|0]")
        self.root_object: dict[str, Any] = {}
        self.pages = [Page("\n".join(lines))]
