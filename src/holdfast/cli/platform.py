"""`platform`: lists the profiles and the capabilities of each. It opens no store and reads no setting."""

from __future__ import annotations

from typing import Annotated

from holdfast.cli.json_output import plain, print_json
from holdfast.cli.options import Json, command, group, option
from holdfast.cli.render import show_table
from holdfast.domain.capabilities import Capability, Gate, MemoryCapabilityCatalog, Section, catalogue, snapshot
from holdfast.domain.profiles import DEFAULT_PROFILE, KIB, MIB, PROFILES, Profile, profile_of

app = group("Show the profiles and the capabilities of each.")

_BECAUSE = {
    Gate.PROFILE: "not in this profile",
    Gate.BUILT_IN: "not built yet",
    Gate.CONFIGURED: "not configured",
    Gate.PERMITTED: "not permitted",
    Gate.PRIVACY: "kept private",
}
_Name = Annotated[str, option("--profile", "NAME", "One of `holdfast platform profiles`, with or without profile-.")]


@command(app, "capability-snapshot")
def capability_snapshot(profile: _Name = DEFAULT_PROFILE, as_json: Json = False) -> None:
    """Show the capabilities of a profile.

    For a missing capability it shows the reason. The output is deterministic, so that two can be compared.
    """
    shown = catalogue(profile_of(profile))
    if as_json:
        print_json(snapshot(shown))
        return
    print_capabilities(shown)


def print_capabilities(shown: MemoryCapabilityCatalog) -> None:
    """Print each capability by section, and why one is missing."""
    visible = sum(capability.visible for capability in shown.capabilities)
    print(
        f"{shown.profile.name} ({shown.profile.kind}): {visible} of {len(shown.capabilities)} capabilities are visible"
    )
    for section in Section:
        print(f"\n{section}")
        for capability in shown.of(section):
            print(_line(capability))


@command(app)
def profiles(as_json: Json = False) -> None:
    """Show every profile and its budget.

    A budget is the most that a memory may use there; --json has all of it.
    """
    if as_json:
        print_json({"profiles": [_document(profile) for profile in PROFILES.values()]})
        return
    show_table(
        ("profile", "kind", "records>", "events>", "blobs>", "body>", "characters>"), map(_row, PROFILES.values()), ""
    )


def _line(capability: Capability) -> str:
    because = "" if capability.reason is None else _BECAUSE[capability.reason]
    return f"  {capability.name:<30}{'yes' if capability.visible else 'no ':<5}{because}".rstrip()


def _row(profile: Profile) -> tuple[object, ...]:
    budget = profile.budget
    blobs, body = f"{budget.blob_bytes // MIB} MiB", f"{budget.http_body_bytes // KIB} KiB"
    return (profile.name, profile.kind, budget.records, budget.events, blobs, body, budget.render_chars)


def _document(profile: Profile) -> dict[str, object]:
    budget = profile.budget
    return {**plain(profile), "recent_messages": budget.recent_messages, "transcript": budget.transcript}
