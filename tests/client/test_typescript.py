"""A TypeScript client, generated from our document and compiled, whose calls are named as a person would name them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from client.node import PACKAGES, install, is_installed, run_node
from faults.needs import missing
from gateway.served import Gateway, serving

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "use-typescript.md"
# The other calls of a first day. Lines below a comment must not compile.
CALLS = """
import { client } from "./client/client.gen.js";
import * as holdfast from "./client/index.js";

client.setConfig({ baseUrl: process.env.URL, auth: process.env.KEY });
const throwOnError = true;
const said = { content: "The lantern hangs in the hall.", timestamp: 1780000000000 };
const added = await holdfast.addMemories({ body: { messages: said, defer_extraction: true }, throwOnError });
const ignored: string[] | undefined = added.data.ignored;
const path = { record_id: added.data.message_ids[0] ?? "none" };
const { data: first } = await holdfast.getMemory({ path, throwOnError });
await holdfast.correctMemory({ path, body: { text: "The lantern hangs in the kitchen." }, throwOnError });
const { data: history } = await holdfast.getMemoryHistory({ path, throwOnError });
await holdfast.flushMemories({ body: {}, throwOnError });
const preview = await holdfast.forgetMemories({ body: { everything: true }, throwOnError });
await holdfast.forgetMemories({ body: { everything: true, token: preview.data.token }, throwOnError });
const after = await holdfast.getMemory({ path });
const problem = after.error?.code;
console.log(JSON.stringify([first.text, ignored, history.revisions.length, problem]));

// @ts-expect-error: a search needs a query
await holdfast.searchMemories({ body: {} });
// @ts-expect-error: a mistyped field
await holdfast.searchMemories({ body: { query: "x", topk: 3 } });
// @ts-expect-error: a number is no message
await holdfast.addMemories({ body: { messages: 3 } });
"""


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    with serving(tmp_path_factory.mktemp("typescript") / "memory.db", work=False) as found:
        yield found


@pytest.fixture(scope="module")
def project(gateway: Gateway, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project of the page, with one more program, generated and compiled."""
    if not is_installed() and (problem := install()):
        missing(f"the npm packages of the TypeScript client cannot be installed: {problem}")
    folder = tmp_path_factory.mktemp("project")
    page = PAGE.read_text("utf-8")
    (configuration,), (program,) = (re.findall(rf"^```{kind}\n(.*?)^```", page, re.M | re.S) for kind in ("json", "ts"))
    (folder / "tsconfig.json").write_text(configuration.replace('["main.mts"]', '["main.mts", "calls.mts"]'))
    (folder / "main.mts").write_text(program)
    (folder / "calls.mts").write_text(CALLS)
    (folder / "package.json").write_text('{"type": "commonjs"}')  # as `npm init` writes it
    (folder / "node_modules").symlink_to(PACKAGES)
    (folder / "openapi.json").write_text(gateway.http.get("/openapi.json").text)
    run(folder, PACKAGES / "@hey-api/openapi-ts/bin/run.js", "--input", "openapi.json", "--output", "client")
    run(folder, PACKAGES / "typescript/bin/tsc")
    return folder


def run(folder: Path, *arguments: str | Path, **environment: str) -> str:
    done = run_node(*arguments, cwd=folder, **environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_program_of_the_page_runs(gateway: Gateway, project: Path) -> None:
    who = {"URL": gateway.url, "KEY": gateway.user("ana").key}
    lines = run(project, "dist/main.mjs", **who).splitlines()
    assert lines[0] == "I moved to Lisbon last week."
    assert any("sardines" in line for line in lines)
    assert lines[-1] == "3"


def test_calls_have_the_names_that_a_person_gives_them(gateway: Gateway, project: Path) -> None:
    who = {"URL": gateway.url, "KEY": gateway.user("ben").key}
    printed = run(project, "dist/calls.mjs", **who)
    assert printed == '["The lantern hangs in the hall.",["defer_extraction"],2,"not_found"]\n', printed
