"""Reads a hostile document behind several barriers, as root or as an ordinary user, and prints what it could do.

python hostile_parent.py <user id or -> <folder> <barriers,...>
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import signal
import struct
import sys
from pathlib import Path
from typing import Any

_READ_ANYTHING = 2  # the capability to read files: the interpreter may belong to root
_KEEP, _AMBIENT, _RAISE = 8, 47, 2
_LET_TRACE, _ANYBODY = 0x59616D61, -1  # where tracing a parent is forbidden, the attacks would prove nothing
_GROUPS = ["file", "write", "mode", "start", "signal", "memory", "socket", "call"]
_WITHOUT_HARM = ["file", "signal", "memory", "socket"]
SECRET = b"canary in memory"
_kept = ctypes.create_string_buffer(SECRET)


def become(user: int) -> None:
    """Start this program again as an ordinary user, who may read the interpreter but nothing else of root's."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(_KEEP, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    header = struct.pack("=Ii", 0x20080522, 0)
    rights = struct.pack("=6I", *[1 << _READ_ANYTHING] * 3, 0, 0, 0)
    assert libc.capset(header, rights) == 0
    assert libc.prctl(_AMBIENT, _RAISE, _READ_ANYTHING, 0, 0) == 0
    os.execv(sys.executable, [sys.executable, __file__, "-", *sys.argv[2:]])


def document(target: dict[str, Any]) -> bytes:
    return b"%PDF-1.7\n" + json.dumps(target).encode() + b"\nstartxref\n0\n%%EOF\n"


def unconfined(target: dict[str, Any]) -> dict[str, tuple[bool, int]]:
    """Make the harmless attacks from a child without barriers: they must succeed, or they prove nothing."""
    from pypdf import attack_all

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, json.dumps(attack_all(target, _WITHOUT_HARM)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as answer:
        made: dict[str, tuple[bool, int]] = json.load(answer)
    os.waitpid(child, 0)
    return made


def main(folder: Path, barriers: list[str]) -> None:
    sys.path.insert(0, str(folder / "packages"))
    signal.signal(signal.SIGUSR1, lambda *_: received.append(1))
    ctypes.CDLL(None).prctl(_LET_TRACE, ctypes.c_long(_ANYBODY), 0, 0, 0)
    received: list[int] = []
    from holdfast.documents.kernel import ALLOWED_CALLS, Barrier
    from holdfast.documents.reader import DocumentReader
    from holdfast.loops import run_sync

    target = {
        "parent": os.getpid(), "group": os.getpgid(0), "store": str(folder / "open" / "store.db"),
        "folder": str(folder / "open"), "secret_at": ctypes.addressof(_kept), "allowed": [], "groups": _GROUPS,
    }  # fmt: skip
    report: dict[str, Any] = {"unconfined": unconfined(target)}
    received.clear()
    column = ("x86_64", "aarch64").index(os.uname().machine)
    for name in barriers:
        behind = Barrier[name]
        target["allowed"] = [each[column] for each in ALLOWED_CALLS.values()] if Barrier.SECCOMP in behind else []
        target["groups"] = _GROUPS if behind else ["memory", "file"]
        reader = DocumentReader(barriers=behind, unconfined=True)
        read = run_sync(reader.read(document(target), None, "hostile.pdf", "me"))
        lines = re.findall(r"\[([^|\]]*)\|(\d+)\|(-?\d+)\]", "\n".join(read.chunks))
        report[name] = {what: (int(done), int(number)) for what, done, number in lines}
    report["signals"] = len(received)
    report["intact"] = _kept.value == SECRET
    print(json.dumps(report))


if __name__ == "__main__":
    if sys.argv[1] != "-":
        become(int(sys.argv[1]))
    main(Path(sys.argv[2]), sys.argv[3].split(","))
