"""Count names, docstrings and errors that break the rules of CONTRIBUTING.md; exit 1 if there is any.

- No function or class is named by a bare participle (`told`, `given`, `_checked`, `Found`).
- No class name exists twice in `src/`.
- No docstring and no error begins with a noun clause ("What …", "Whoever …", "Whether …").

Public names are excepted below, by name.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1] / "src" / "holdfast"

IRREGULAR = frozenset(
    "asked begun bound bought broken brought built caught chosen done drawn forgotten found given gone grown heard held"
    " hidden kept known learnt led left lost made meant met paid said seen sent shown spoken taken taught thought"
    " thrown told understood written".split()
)
NO_PARTICIPLES = frozenset(
    ["bed", "embed", "exceed", "feed", "need", "proceed", "red", "reembed", "seed", "shed", "speed"]
)
NOUN_CLAUSE = re.compile(
    r"(What|Whatever|Who|Whoever|Whom|Whose|Whether|Where|Wherever|Which|How (far|much|many|often|long))\b"
)

# Public API, which keeps its names: classes of `holdfast` and `holdfast.sdk`, members of their results, and what
# providers implement.
PUBLIC_NAMES = frozenset(
    [
        *("Added", "Browsed", "Copied", "Flushed", "Issued", "Taken", "Unauthenticated"),
        *("ForgetReceipt.found", "Scope.given", "Secret.revealed", "Taken.changed"),
        *("SemanticGovernance.accepted", "SemanticGovernance.deferred", "SemanticGovernance.rejected"),
        *("ConfiguredProvider.opened", "LocalProvider.opened", "GatewayProvider.opened"),
    ]
)


def is_bare_participle(name: str) -> bool:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).strip("_").lower()
    if "_" in words or words in NO_PARTICIPLES:
        return False
    return words in IRREGULAR or (words.endswith("ed") and len(words) > 3)


def findings(root: Path = ROOT) -> Iterator[str]:
    classes: dict[str, list[str]] = defaultdict(list)
    for path in sorted(root.rglob("*.py")):
        relative = path.relative_to(root).as_posix()
        for node, name in _walk(ast.parse(path.read_text("utf-8"))):
            where = f"src/holdfast/{relative}:{getattr(node, 'lineno', 1)}"
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if is_bare_participle(node.name) and name not in PUBLIC_NAMES:
                    yield f"{where} {name}: a bare participle; name the action or the thing"
                if isinstance(node, ast.ClassDef):
                    classes[node.name].append(where)
            if isinstance(node, ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                if NOUN_CLAUSE.match(ast.get_docstring(node) or ""):
                    yield f"{where} docstring begins with a noun clause; begin with a verb or a noun"
            elif isinstance(node, ast.Raise) and any(NOUN_CLAUSE.match(text) for text in _texts(node)):
                yield f"{where} error begins with a noun clause; say what was wrong"
    for name, places in classes.items():
        if len(places) > 1:
            yield f"{places[0]} class {name} exists {len(places)} times: {', '.join(places[1:])}"


def _walk(node: ast.AST, name: str = "") -> Iterator[tuple[ast.AST, str]]:
    """Every node with the qualified name of the definition that it is, or is in."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        name = f"{name}.{node.name}" if name else node.name
    yield node, name
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, name)


def _texts(statement: ast.Raise) -> Iterator[str]:
    """The literal beginnings of the arguments of the raised error."""
    if isinstance(statement.exc, ast.Call):
        for argument in statement.exc.args:
            first = argument.values[0] if isinstance(argument, ast.JoinedStr) and argument.values else argument
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                yield first.value


def main() -> int:
    found = list(findings())
    for line in found:
        print(line)
    print(f"{len(found)} names, docstrings and errors break the rules of CONTRIBUTING.md" if found else "words: ok")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
