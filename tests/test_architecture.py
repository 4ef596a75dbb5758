"""Architecture rules: allowed imports, the modules that may contain SQL or read the environment, and size limits.

Read from the source by `ast`; each failure names the offender.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import FunctionType

import holdfast
from holdfast import errors
from holdfast.settings import Settings

ROOT = Path(holdfast.__file__).parent
MODULES = {path.relative_to(ROOT).as_posix().removesuffix(".py"): path for path in sorted(ROOT.rglob("*.py"))}
GENERATED = {name for name, path in MODULES.items() if "Written by `make generate`" in path.read_text("utf-8")[:200]}
CORE = {"errors", "domain", "failpoints", "installation", "loops", "pending_call", "private_files"}
# Allowed imports per package, besides itself. `errors ← domain ← ports ← runtime ← control ← edges`; only `app` may
# import everything. Providers are implementations: of them, only `local` uses the runtime.
ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "failpoints": set(),
    "installation": set(),
    "private_files": set(),
    "loops": {"errors", "domain"},
    "pending_call": {"errors", "domain"},
    "domain": {"errors"},
    "ports": CORE,
    "runtime": {*CORE, "ports"},
    "providers": {*CORE, "ports", "client", "runtime"},
    "control": {*CORE, "ports", "runtime"},
    "stores": {*CORE, "ports"},
    "search": {*CORE, "ports"},
    "extract": {*CORE, "ports"},
    "documents": {*CORE, "ports"},
    # The conformance suites need the ports alone; replay runs whole runtimes.
    "testing": {*CORE, "ports", "runtime", "sdk", "settings", "transports", "wire"},
    "settings": {"errors"},
    "inputs": {*CORE, "ports"},
    "memory_api": {*CORE, "ports", "inputs", "runtime"},
    "library": {*CORE, "inputs", "memory_api", "runtime"},
    "sdk": {*CORE, "ports", "runtime", "app", "opening", "settings", "skill_folders"},
    "wire": {*CORE, "ports", "runtime", "control"},
    # Stands on the runtime's operations and their codec, for every transport.
    "transports": {*CORE, "ports", "runtime", "sdk", "wire"},
    "sync": {"domain", "library", "loops", "memory_api"},
    "client": {*CORE, "ports", "runtime", "library", "wire", "settings"},
    "opening": {*CORE, "ports", "app", "client", "library", "settings", "sync"},
    "control_api": {*CORE, "ports", "control", "inputs", "opening"},
    "plane": {"control_api"},  # its old name
    "gateway": {
        *CORE,
        "mcp",
        "control",
        "control_api",
        "holdfast",
        "library",
        "ports",
        "inputs",
        "runtime",
        "sdk",
        "transports",
        "wire",
        "settings",
    },
    "mcp": {*CORE, "holdfast", "control", "control_api", "inputs", "library", "ports", "runtime", "transports"},
    "mcp_clients": {*CORE, "settings"},
    "skill_folders": {"errors", "domain"},
    "agent": {*CORE, "ports", "app", "client", "settings", "skill_folders"},
    "cli": {
        *CORE,
        "mcp",
        "mcp_clients",
        "transports",
        "agent",
        "control",  # the JSON form of the control plane's jobs
        "runtime",  # the tables of verbs
        "holdfast",
        "settings",
        "app",
        "gateway",
        "library",
        "ports",
        "inputs",
        "opening",
        "sdk",
        "sync",
        "testing",  # the gates of `replay`
    },
}
SEES_EVERYTHING = {"app", "__init__", "__main__"}
MAX_FUNCTION_LINES = 60
MAX_MODULE_LINES = 500
MAX_METHODS = 45
MAX_DEPTH = 4
_STATEMENT = re.compile(
    r"\b(SELECT\s.+\sFROM\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|CREATE\s+(TABLE|INDEX)\s"
    r"|PRAGMA\s+\w|BEGIN\s+IMMEDIATE)",
    re.DOTALL,
)


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(MODULES[name].read_text("utf-8"))


def room(name: str) -> str:
    return name.split("/")[0]


def imports(name: str) -> Iterator[tuple[str, int]]:
    """The packages of holdfast that a module imports, with the line. `holdfast` alone is the public API."""
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            whole = node.module == "holdfast"
            names = [f"holdfast.{alias.name}" if whole else str(node.module) for alias in node.names]
        else:
            continue
        for imported in names:
            parts = imported.split(".")
            if parts[0] == "holdfast":
                yield (parts[1] if len(parts) > 1 else "holdfast"), node.lineno


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


@cache
def docstrings(name: str) -> set[int]:
    owners = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    bodies = [node.body for node in ast.walk(tree(name)) if isinstance(node, owners) and node.body]
    return {id(body[0].value) for body in bodies if isinstance(body[0], ast.Expr)}


def test_a_module_imports_only_what_its_room_may_see() -> None:
    bounded = [name for name in MODULES if room(name) not in SEES_EVERYTHING]
    unknown = {room(name) for name in bounded} - ALLOWED.keys()
    assert not unknown, f"{unknown} are no known rooms: add their rules here and to ARCHITECTURE.md"
    offences = [
        f"{name}.py:{line} imports holdfast.{found}"
        for name in bounded
        for found, line in imports(name)
        if found not in {*ALLOWED[room(name)], room(name)}
    ]
    assert not offences


def test_imports_are_absolute() -> None:
    offences = [
        f"{name}.py:{node.lineno} imports relatively"
        for name in MODULES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.ImportFrom) and node.level
    ]
    assert not offences


def test_only_app_chooses_implementations() -> None:
    implementations = {"stores", "search", "extract", "documents", "providers"}
    offences = [
        f"{name}.py:{line} imports holdfast.{found}"
        for name in MODULES
        for found, line in imports(name)
        if found in implementations and room(name) not in {*implementations, "app"}
    ]
    assert not offences


def test_only_the_local_provider_stands_on_the_runtime() -> None:
    standing = {name for name in MODULES if room(name) == "providers" and "runtime" in {at for at, _ in imports(name)}}
    assert standing <= {"providers/local"}


def test_the_rooms_of_implementations_do_not_see_each_other() -> None:
    implementations = {"stores", "search", "extract", "documents", "providers"}
    offences = [
        f"{name}.py:{line} imports holdfast.{found}"
        for name in MODULES
        if room(name) in implementations
        for found, line in imports(name)
        if found in implementations - {room(name)}
    ]
    assert not offences


def test_only_settings_reads_the_environment() -> None:
    forbidden = {"os.environ", "os.getenv", "os.environb", "environ", "getenv"}
    offences = [
        f"{name}.py:{node.lineno} reads {dotted(node)}"
        for name in MODULES
        if name != "settings"
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute | ast.Name) and dotted(node) in forbidden
    ]
    assert not offences


def test_sql_is_written_in_stores_alone() -> None:
    offences = [
        f"{name}.py:{node.lineno} holds a statement"
        for name in MODULES
        if room(name) != "stores"
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings(name)
        if _STATEMENT.search(node.value)
    ]
    drivers = [place for place in calls("connect") if not place.startswith("stores/")]
    assert not offences + drivers


def calls(to: str) -> list[str]:
    return [
        f"{name}.py:{node.lineno}"
        for name in MODULES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] == to
    ]


# Calls that create files or change their modes, but for `open`, which creates in some modes only.
_CREATING = {
    "FileHandler", "NamedTemporaryFile", "RotatingFileHandler", "SpooledTemporaryFile", "TemporaryDirectory",
    "TemporaryFile", "TimedRotatingFileHandler", "WatchedFileHandler", "ZipFile", "chmod", "copy2", "copyfile",
    "copyfileobj", "copytree", "fchmod", "lchmod", "makedirs", "memmap", "mkdir", "mkdtemp", "mkfifo", "mknod",
    "mkstemp", "save", "savez", "symlink", "symlink_to", "tofile", "touch", "umask", "write_bytes", "write_text",
}  # fmt: skip
# Where they are harmless.
_HARMLESS = {
    "agent/curated/files fchmod": "a replaced file keeps its mode",
    "agent/initialize chmod": "to 0600",
    "mcp_clients/installation fchmod": "a replaced file keeps its mode",
    "cli/demo TemporaryDirectory": "always 0700",
    "documents/archive ZipFile": "reads",
    "stores/sql/records/writer touch": "a partition",
    "stores/sql/resources touch": "a partition",
    "stores/sql/transcripts/writer touch": "a partition",
    "stores/sql/write_scope touch": "a partition",
    "stores/sqlite/graphs memmap": "reads",
    "stores/sqlite/graphs save": "a private file that was just created",
    "stores/sqlite/graphs tofile": "a private file that was just created",
    # `connect` cannot create files: it opens with mode=rw.
    "stores/copying sqlite3.connect": "in memory",
    "stores/sqlite/checksums sqlite3.connect": "in memory",
    "stores/sqlite/connection sqlite3.connect": "mode=rw, or in memory",
    "stores/sqlite/examine sqlite3.connect": "mode=ro",
}


def _creates(call: ast.Call) -> str:
    """The name of a call that may create a file without a private mode; empty if it cannot."""
    whole = dotted(call.func)
    name = whole.rpartition(".")[2]
    if whole == "sqlite3.connect":
        return whole
    if name != "open" and not (isinstance(call.func, ast.Attribute) and call.func.attr == "open"):
        last = call.func.attr if isinstance(call.func, ast.Attribute) else name
        return last if last in _CREATING else ""
    if any(each.arg == "opener" and dotted(each.value) == "open_private" for each in call.keywords):
        return ""
    given = [each.value for each in ast.walk(call) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    created = any(isinstance(each, ast.Attribute) and each.attr == "O_CREAT" for each in ast.walk(call))
    return "open" if created or any(re.fullmatch("(?=.*[wxa])[wxabt+]+", mode) for mode in given) else ""


def _creating_calls(name: str) -> Iterator[str]:
    private: set[int] = set()
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.Call):
            private |= {id(each) for each in ast.walk(node) if dotted(node.func) == "open_private"}
            yield _creates(node)
        # The documents' readers refuse the flag.
        elif isinstance(node, ast.Attribute) and node.attr == "O_CREAT" and room(name) != "documents":
            yield "" if id(node) in private else "O_CREAT"


def test_files_are_created_by_the_module_of_private_files() -> None:
    found = {f"{name} {call}" for name in MODULES if name != "private_files" for call in _creating_calls(name) if call}
    assert found == _HARMLESS.keys(), "create files with holdfast.private_files"


def test_a_grant_is_made_in_one_place() -> None:
    made = calls("Grant")
    assert made
    assert {place.split(":")[0] for place in made} == {"domain/access.py"}, made


def test_the_domain_does_no_io_and_reads_no_clock() -> None:
    forbidden = {"asyncio", "sqlite3", "pathlib", "socket", "threading", "random", "time", "os", "uuid", "uuid_utils"}
    offences = [
        f"{name}.py:{node.lineno} imports {alias.name}"
        for name in MODULES
        if room(name) == "domain"
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name.split(".")[0] in forbidden
    ]
    clocks = [
        f"{name}.py:{node.lineno} reads the clock"
        for name in MODULES
        if room(name) == "domain"
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in ("now", "utcnow", "today")
    ]
    assert not offences + clocks


def functions(name: str) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree(name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{name}.py:{node.lineno} {node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def test_no_function_is_longer_than_a_screen() -> None:
    written = MODULES.keys() - GENERATED
    long = {where: lines for name in written for where, lines in functions(name) if lines > MAX_FUNCTION_LINES}
    assert not long


def test_generated_modules_are_up_to_date() -> None:
    generate = [sys.executable, "tools/generate.py", "--check"]
    checked = subprocess.run(generate, cwd=ROOT.parents[1], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert GENERATED


# Tables of words and patterns: data, more readable in one piece.
DATA = {"extract/patterns", "search/words"}


def test_no_module_is_longer_than_five_hundred_lines() -> None:
    written = MODULES.keys() - DATA - GENERATED
    lengths = {name: len(MODULES[name].read_text("utf-8").splitlines()) for name in written}
    assert not {name: lines for name, lines in lengths.items() if lines > MAX_MODULE_LINES}


# --- classes --------------------------------------------------------------------------------------------------------

# Many methods are right in two kinds of class: a conformance suite has one per promise, and a public face one per call.
SUITES = {"ProviderContract", "StoreContract", "DurableStoreContract"}
FACES = {"ControlPlane", "AsyncControlPlane", "MemoryRuntime", "AsyncMemoryRuntime"}


@cache
def classes() -> list[type]:
    """Every class that a module of the package defines."""
    names = [found.name for found in pkgutil.walk_packages(holdfast.__path__, "holdfast.")]
    modules = [importlib.import_module(name) for name in names if name != "holdfast.plane"]  # deprecated
    return [
        found
        for module in modules
        for _, found in inspect.getmembers(module, inspect.isclass)
        if found.__module__ == module.__name__
    ]


def ours(found: type) -> bool:
    return found.__module__.split(".")[0] == "holdfast"


def methods_of(found: type) -> set[str]:
    """The names of all functions and properties that our own classes give it."""
    kinds = (FunctionType, classmethod, staticmethod, property)
    return {
        name
        for each in found.__mro__
        if ours(each)
        for name, member in vars(each).items()
        if isinstance(member, kinds) and not hasattr(object, name) and name != "__getattr__"  # it explains a wrong name
    }


def depth_of(found: type) -> int:
    return 1 + max((depth_of(base) for base in found.__bases__ if ours(base)), default=0)


def test_no_class_has_more_methods_than_a_reader_can_hold() -> None:
    counts = {found: len(methods_of(found)) for found in classes() if found.__name__ not in SUITES | FACES}
    assert counts
    assert not {f"{found.__module__}.{found.__name__}": n for found, n in counts.items() if n > MAX_METHODS}


def test_no_hierarchy_is_deeper_than_four() -> None:
    assert not {f"{found.__module__}.{found.__name__}" for found in classes() if depth_of(found) > MAX_DEPTH}


def test_every_module_says_what_it_owns() -> None:
    silent = [name for name in MODULES if tree(name).body and not ast.get_docstring(tree(name))]
    assert not silent


def test_no_module_is_named_for_nothing() -> None:
    vague = re.compile(r"(^|/|_)(utils?|helpers?|common|misc|manager|base|impl)$")
    assert not [name for name in MODULES if vague.search(name)]


def test_nothing_swallows_every_exception() -> None:
    """A handler of every exception must re-raise, return or log it."""
    offences = [
        f"{name}.py:{node.lineno}"
        for name in MODULES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.ExceptHandler)
        and (node.type is None or dotted(node.type) in ("Exception", "BaseException"))
        and all(isinstance(statement, ast.Pass | ast.Continue) for statement in node.body)
    ]
    assert not offences


# The `repr` of a result is cut: in a key or a digest, two values could have the same.
SHOWN_BY_REPR = {
    "agent/tools", "domain/presentable", "domain/result_lines", "domain/usage", "ports/records", "runtime/idempotency",
    "search/embedders/static", "stores/sql/copy_endpoint", "testing/full_repr",
}  # fmt: skip


def test_no_key_is_made_of_a_repr() -> None:
    """These show it, or call it on numbers, texts and rows."""
    callers = {
        name
        for name in MODULES
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Call) and dotted(node.func) == "repr"
    }
    assert callers <= SHOWN_BY_REPR


# --- the public API -------------------------------------------------------------------------------------------------

PUBLIC = [
    "Absence", "Actor", "ActorKind", "Added", "AllOf", "AnyOf", "AsyncControlPlane", "AsyncMemory", "BackupResult",
    "Browsed", "Compare", "Component", "ControlPlane", "Copied", "CustomEmbedder", "Draft", "Event", "EventPage",
    "Evidence", "Explanation", "Flushed", "ForgetPreview", "ForgetReceipt", "Hit", "HitKind", "HoldfastError",
    "Issued", "Memory", "MemoryRecord", "Message", "Not", "Page", "Plane", "Recall", "Resource", "ResourceAdded",
    "ResourcePage", "RestoreResult", "Results", "RetainedBackup", "Role", "Scope", "Stats", "Status", "Trust", "User",
    "UserPage", "Validity", "Way", "Weights", "backup", "copy", "errors", "open", "open_async", "restore",
]  # fmt: skip


def test_the_public_names_are_these() -> None:
    assert holdfast.__all__ == PUBLIC
    assert all(hasattr(holdfast, name) for name in PUBLIC)


def test_the_package_is_typed() -> None:
    assert (ROOT / "py.typed").is_file()


# --- errors and settings --------------------------------------------------------------------------------------------

ERRORS = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, errors.HoldfastError)]


def drawn() -> dict[str, str | None]:
    """Each error in the tree at the top of `errors.py`, with its parent."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        if found := re.match(r"^([ │├└─]*)([A-Z]\w+)", line):
            depth = len(found.group(1)) // 4
            if not found.group(1) or (depth == 1 and "─" not in found.group(1) and found.group(2) != "HoldfastError"):
                continue
            depth = depth - 1
            path = [*path[:depth], found.group(2)]
            parents[found.group(2)] = path[depth - 1] if depth else None
    return parents


def test_every_error_stands_in_the_drawing_where_its_class_does() -> None:
    actual = {found.__name__: None if found is errors.HoldfastError else found.__mro__[1].__name__ for found in ERRORS}
    assert drawn() == actual


def test_every_error_has_a_code_of_its_own_and_says_what_it_is() -> None:
    codes = [found.code for found in ERRORS]
    assert len(set(codes)) == len(codes)
    assert all("code" in vars(found) for found in ERRORS)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)
    assert not [found.__name__ for found in ERRORS if not (vars(found).get("__doc__") or "").strip()]


def test_every_setting_says_what_it_is_for() -> None:
    assert Settings.model_fields
    silent = [name for name, field in Settings.model_fields.items() if not (field.description or "").strip()]
    assert not silent


# --- writes and their events ------------------------------------------------------------------------------------------

RECORD_WRITES = re.compile(
    r"\.(records\.(add_revision|forget)|transcripts\.add_turn|resources\.add)\(|\brecords\.add_revision\b"
)


def test_only_one_module_writes_records_so_each_write_leaves_its_event() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("runtime", "control", "sdk")
        for path in (ROOT / folder).rglob("*.py")
        if RECORD_WRITES.search(path.read_text("utf-8"))
    }
    assert found == {"runtime/record_writes.py"}
