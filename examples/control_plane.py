"""One company, several agents: write and query through the control plane, then read the audit trail."""

import tempfile
from pathlib import Path

import holdfast

with tempfile.TemporaryDirectory() as folder:
    with holdfast.ControlPlane.open(Path(folder) / "company.db", space="acme") as plane:
        plane.upsert("Releases go out on Tuesdays.", agent="builder", source="manual_note")
        found = plane.query("When are releases?", agent="builder")
        print(found.binding, [snippet.text for snippet in found.result.snippets])
        for operation in plane.operations(agent="builder").items:
            print(operation.action, operation.outcome, operation.record_count)
