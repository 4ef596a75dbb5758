"""The sandbox for the process that reads one document: both the parent's and the child's side.

The parent starts a fresh interpreter with an empty environment and no files but its standard streams, sends it the
document, and takes its output up to a limit of bytes and seconds. Before the child reads the document, it drops what it
does not need: root's rights, memory and time beyond its limits, and, behind the barriers of the kernel, files, further
processes and sockets. However the child ends, the parent continues.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from holdfast.documents.kernel import Barrier, hide_memory, raise_barriers
from holdfast.documents.limits import MEGABYTE, Limits
from holdfast.errors import ConfigurationError, InvalidDocument

OUT_OF_MEMORY = 71
NOT_CONFINED = 72
_NICENESS = 10  # a tenth of the others' share where they want all of it, so that it still ends
_NOBODY = 65_534  # owns nothing, by convention
_FEW_FILES = 16
_ADVICE = "split it, or send its text instead"
_FORBIDDEN = (
    "socket.", "subprocess.", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.kill", "ctypes.",
    "os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.ch", "shutil.",
)  # fmt: skip
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


def yield_to_others() -> None:
    """Leave the processor to others: a document has time, and a caller of the service has not."""
    with contextlib.suppress(AttributeError, OSError):
        os.nice(_NICENESS)
    with contextlib.suppress(AttributeError, OSError):
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))


def confine(memory_bytes: int, cpu_seconds: int, barriers: Barrier) -> None:
    """Permanently drop what a reader does not need. Call it after the last import, before the document is read.

    Raises `OSError` if a barrier cannot be raised.
    """
    _limit_resources(memory_bytes, cpu_seconds)  # imports, which only root may be able to
    _leave_root()
    raise_barriers(barriers)
    sys.addaudithook(_refuse)


def _leave_root() -> None:
    """Become a user without rights. Root without the right to do so has few others; the barriers bind it as well."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return
    with contextlib.suppress(OSError):
        os.setgroups([])
        os.setgid(_NOBODY)
        os.setuid(_NOBODY)


def _limit_resources(memory_bytes: int, cpu_seconds: int) -> None:
    import resource

    def limit(what: int, most: int, grace: int = 0) -> None:
        _, hard = resource.getrlimit(what)
        least, most = (most, most + grace) if hard == resource.RLIM_INFINITY else (min(most, hard), hard)
        resource.setrlimit(what, (least, min(most, least + grace)))

    # The soft limit sends SIGXCPU, the hard limit SIGKILL; only SIGXCPU tells the reason.
    limit(resource.RLIMIT_CPU, cpu_seconds, 1)
    limit(resource.RLIMIT_FSIZE, 0)
    limit(resource.RLIMIT_CORE, 0)
    limit(resource.RLIMIT_NOFILE, _FEW_FILES)
    # Not every system has these two, or allows setting them; time and output are limited anyway.
    for name, most in (("RLIMIT_AS", memory_bytes), ("RLIMIT_NPROC", 0)):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            limit(getattr(resource, name), most)


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook that refuses what no reader needs. It stops Python code; the barriers and limits bind native code."""
    writes = event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITING
    if writes or event.startswith(_FORBIDDEN):
        raise PermissionError(f"{event} is not allowed here")


def run_program(program: Sequence[str], document: bytes, limits: Limits, barriers: Barrier) -> bytes:
    """Run the program on a document and return its output, or raise `InvalidDocument`. Blocks.

    The program raises the `barriers`.
    """
    if barriers is not Barrier.ALL:
        hide_memory()
    # Only what Python itself needs: the child must not see keys in our environment.
    environment = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if os.path.isabs(path)), "LC_ALL": "C.UTF-8"}
    try:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and our own program
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            cwd=os.sep,
            start_new_session=True,
        )
    except OSError as error:
        problem = f"cannot be read now: no process could be started for it ({error.strerror}); try again later"
        raise InvalidDocument("content", problem) from error
    late = threading.Event()
    timer = threading.Timer(limits.wall_seconds, _kill_late, (process, late))
    timer.daemon = True
    timer.start()
    with process:
        try:
            answer = _exchange(process, document, limits.max_output_bytes)
        finally:
            timer.cancel()
            process.kill()
    if late.is_set():
        raise InvalidDocument("content", f"takes more than {limits.wall_seconds:g} seconds to read; {_ADVICE}")
    if len(answer) > limits.max_output_bytes:
        raise InvalidDocument("content", f"gives more than {limits.max_output_bytes // MEGABYTE} MB of text; split it")
    _check_end(process.returncode, limits)
    return answer


def _kill_late(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    process.kill()


def _exchange(process: subprocess.Popen[bytes], document: bytes, most: int) -> bytes:
    """Send the document, then read the output. The child reads all input first, so there is no deadlock."""
    assert process.stdin is not None
    assert process.stdout is not None
    # The child may have died; its exit code tells why.
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(document)
        process.stdin.flush()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    answer = process.stdout.read(most + 1)
    if len(answer) <= most:
        process.wait()
    return answer


def _check_end(code: int, limits: Limits) -> None:
    if code == 0:
        return
    if code == NOT_CONFINED:
        raise ConfigurationError("the process that reads documents could not be confined; `holdfast doctor` says more")
    if code == OUT_OF_MEMORY:
        raise InvalidDocument("content", f"takes more than {limits.memory_bytes // MEGABYTE} MB to read; {_ADVICE}")
    if code == -signal.SIGXCPU:
        raise InvalidDocument("content", f"takes more than {limits.cpu_seconds} seconds to read; {_ADVICE}")
    # Native code may crash when out of memory, so the two causes cannot always be told apart.
    problem = "is damaged, or too large for its reader, which crashed; save it again"
    raise InvalidDocument("content", f"{problem}, {_ADVICE}")
