"""The official TypeScript client completes a session on every revision, over HTTP and with a process."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from client.node import PACKAGES, install, is_installed, run_node
from faults.needs import missing
from mcp_lines import REVISIONS
from serving import USER_KEY, served

PROGRAM = """
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const { URL: url, KEY, COMMAND, REVISIONS } = process.env;
const headers = { Authorization: `Bearer ${KEY}` };

async function session(revision, transport) {
  const modern = revision >= "2026";
  const options = modern
    ? { versionNegotiation: { mode: { pin: revision } } }
    : { supportedProtocolVersions: [revision] };
  const client = new Client({ name: "session", version: "1" }, options);
  await client.connect(transport);
  const { tools } = await client.listTools();
  const call = async (name, args) => client.callTool({ name, arguments: args });
  const written = await call("remember", { text: `The lantern of ${revision} hangs in the hall.` });
  const recalled = await call("recall", { query: `Where does the lantern of ${revision} hang?` });
  const { contents } = await client.readResource({ uri: "holdfast://memories/recent" });
  const { prompts } = await client.listPrompts();
  const wrong = await call("recal", {});
  const preview = await call("forget", { record_ids: [written.structuredContent.record_id] });
  await client.close();
  return [
    tools.length, recalled.content[0].text.includes("in the hall"), contents[0].text.includes(revision),
    prompts.length, wrong.isError, preview.structuredContent.forgotten,
  ];
}

const found = {};
for (const revision of JSON.parse(REVISIONS)) {
  const transport = new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } });
  found[revision] = await session(revision, transport);
}
const [command, ...args] = JSON.parse(COMMAND);
found.process = await session("2025-11-25", new StdioClientTransport({ command, args }));
console.log(JSON.stringify(found));
"""


def test_a_session_of_the_typescript_client(tmp_path: Path) -> None:
    if not is_installed() and (problem := install()):
        missing(f"the npm packages of the TypeScript client cannot be installed: {problem}")
    (tmp_path / "node_modules").symlink_to(PACKAGES)
    (tmp_path / "session.mjs").write_text(PROGRAM)
    command = [sys.executable, "-m", "holdfast", "mcp", "--store", str(tmp_path / "own.db")]
    with served(str(tmp_path / "memory.db")) as service:
        sent = {"URL": service.url, "KEY": USER_KEY, "COMMAND": json.dumps(command), "REVISIONS": json.dumps(REVISIONS)}
        done = run_node("session.mjs", cwd=tmp_path, **sent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout) == {key: [5, True, True, 2, True, False] for key in (*REVISIONS, "process")}
