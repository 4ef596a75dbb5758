"""Barriers of the Linux kernel around a process: seccomp (few system calls), Landlock (no files, no other process).

They bind native code too, and cannot be lowered again. They are raised through ctypes, because the packages for them
need a C library that is often missing, or a newer kernel than most. A system without one lacks that barrier.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import struct
import sys
from enum import Flag, auto


class Barrier(Flag):
    NONE = 0
    SECCOMP = auto()
    LANDLOCK = auto()
    ALL = SECCOMP | LANDLOCK


# All that is left: the open streams, its own memory, the time and the end. The numbers on x86_64 and on aarch64.
ALLOWED_CALLS = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "lseek": (8, 62),
    "mmap": (9, 222), "mprotect": (10, 226), "munmap": (11, 215), "brk": (12, 214), "mremap": (25, 216),
    "madvise": (28, 233), "futex": (202, 98), "sched_yield": (24, 124), "restart_syscall": (219, 128),
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "getpid": (39, 172), "gettid": (186, 178), "getrandom": (318, 278),
    "gettimeofday": (96, 169), "clock_gettime": (228, 113), "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip
_MACHINES = {"x86_64": 0, "aarch64": 1}
_AUDIT_NAMES = (0xC000003E, 0xC00000B7)
_PRCTL = (157, 167)
_LANDLOCK_CREATE, _LANDLOCK_RESTRICT = 444, 446  # the same on all machines

_SET_DUMPABLE, _SET_SECCOMP, _SET_NO_NEW_PRIVILEGES = 4, 22, 38
_FILTER_MODE = 2
# Of the filter's language: load a word, jump if equal, return.
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_NUMBER_AT, _MACHINE_AT = 0, 4
_ALLOW, _REFUSE, _KILL = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x80000000

_VERSION_FLAG = 1
# What each version of Landlock can forbid: kinds of access to files, of use of TCP, of reaching other processes.
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
_ALL_FILE_RIGHTS, _TCP_RIGHTS, _SCOPES = 16, 2, 2
_TCP_FROM, _SCOPES_FROM = 4, 6


@functools.cache
def available_barriers() -> Barrier:
    """Return the barriers that this system has."""
    seccomp = Barrier.SECCOMP if _has_seccomp() else Barrier.NONE
    return seccomp | (Barrier.LANDLOCK if landlock_version() > 0 else Barrier.NONE)


def raise_barriers(barriers: Barrier) -> None:
    """Raise them for the rest of this process's life, or raise `OSError`."""
    if barriers is Barrier.NONE:
        return
    _control(_SET_NO_NEW_PRIVILEGES, 1)
    if Barrier.LANDLOCK in barriers:
        _forbid_files_and_processes()
    if Barrier.SECCOMP in barriers:  # last, since the others are system calls
        _allow_few_calls()


def hide_memory() -> None:
    """Hide this process's memory and environment from others of the same user; it leaves no core dumps either."""
    if _machine() is not None:
        _control(_SET_DUMPABLE, 0)


def landlock_version() -> int:
    """Return the version of Landlock that the kernel has, or 0."""
    if _machine() is None:
        return 0
    return max(0, _call(_LANDLOCK_CREATE, 0, 0, _VERSION_FLAG))


def _has_seccomp() -> bool:
    # Without a filter this changes nothing; a kernel that knows filters says that the address is wrong.
    if _machine() is None or _call(_PRCTL[_machine() or 0], _SET_SECCOMP, _FILTER_MODE, 0) == 0:
        return False
    return ctypes.get_errno() == errno.EFAULT


def _machine() -> int | None:
    """Return this machine's column in the tables, or None if it has none."""
    if sys.platform != "linux" or sys.maxsize < 2**32:
        return None
    return _MACHINES.get(os.uname().machine)


def _allow_few_calls() -> None:
    machine = _machine()
    if machine is None:
        raise OSError(errno.ENOSYS, "no list of system calls for this machine")
    numbers = [each[machine] for each in ALLOWED_CALLS.values()]
    program = [
        (_LOAD, 0, 0, _MACHINE_AT),
        (_JUMP_IF_EQUAL, 1, 0, _AUDIT_NAMES[machine]),
        (_RETURN, 0, 0, _KILL),  # calls in another machine's convention have other numbers
        (_LOAD, 0, 0, _NUMBER_AT),
        *((_JUMP_IF_EQUAL, len(numbers) - place, 0, number) for place, number in enumerate(numbers)),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    steps = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in program))
    header = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(steps)))
    _control(_SET_SECCOMP, _FILTER_MODE, ctypes.addressof(header))


def _forbid_files_and_processes() -> None:
    version = landlock_version()
    rights = [(1 << _FILE_RIGHTS.get(version, _ALL_FILE_RIGHTS)) - 1]
    if version >= _TCP_FROM:
        rights.append((1 << _TCP_RIGHTS) - 1)
    if version >= _SCOPES_FROM:
        rights.append((1 << _SCOPES) - 1)
    wanted = ctypes.create_string_buffer(struct.pack(f"={len(rights)}Q", *rights))
    # A set of rules without a rule allows nothing.
    rules = _check(_call(_LANDLOCK_CREATE, ctypes.addressof(wanted), 8 * len(rights), 0))
    try:
        _check(_call(_LANDLOCK_RESTRICT, rules, 0))
    finally:
        os.close(rules)


def _control(option: int, *arguments: int) -> None:
    _check(_call(_PRCTL[_machine() or 0], option, *arguments))


def _check(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _call(number: int, *arguments: int) -> int:
    """Make a system call; -1 is a failure."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    call.argtypes = [ctypes.c_long] * 7
    result: int = call(number, *arguments, *[0] * (6 - len(arguments)))
    return result
