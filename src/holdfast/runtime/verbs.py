"""The table of the library's verbs. Python methods, commands and the verbs on the wire are derived from it.

A verb's arguments are declared once, by its request (`domain/arguments.py`). This table adds the name of its method
and where it applies. `make generate` writes the methods of `AsyncMemory` and `Memory` from it.
"""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.domain.transcript import DEFAULT_CONVERSATION
from holdfast.runtime import (
    add,
    browse,
    events,
    flush,
    forget,
    lookup,
    recall,
    remember,
    resources,
    revert,
    search,
    store_maintenance,
    users,
)
from holdfast.runtime.verb_entry import Reach, VerbEntry

_CONVERSATION = {"conversation": DEFAULT_CONVERSATION}
_VALIDITY = {"since": "valid_from", "until": "valid_until"}
# The scope names the conversation or the subject to forget.
_IN_SCOPE = ("conversation", "subject")
_RANKING = ("top_k", "min_score", "method", "radius")
_ROTATE_DOC = """Issue a new key for an existing credential, revoked or not. The old key becomes invalid.

    Role and subjects stay as they are, unless given.
    """

VERBS: Mapping[str, VerbEntry] = {
    entry.name: entry
    for entry in (
        VerbEntry("add", add.Add, Reach.SCOPE, defaults=_CONVERSATION, short=True),
        VerbEntry("flush", flush.Flush, Reach.SCOPE, defaults=_CONVERSATION),
        VerbEntry("search", search.Search, Reach.SCOPE, hidden=("quarantined",), short=True),
        VerbEntry("explain", search.Explain, Reach.SCOPE, hidden=("quarantined",), short=True),
        VerbEntry(
            "recall",
            recall.RecallMemory,
            Reach.SCOPE,
            defaults={"top_k": 8},
            hidden=("kind", "quarantined"),  # it chooses between memories and messages itself
            short=True,
        ),
        VerbEntry("get", lookup.Get, Reach.SCOPE, short=True),
        VerbEntry("list", lookup.List, Reach.SCOPE, short=True),
        VerbEntry("browse", browse.Browse, Reach.SCOPE, hidden=(*_RANKING, "quarantined"), short=True),
        VerbEntry("history", lookup.GetHistory, Reach.SCOPE, short=True),
        VerbEntry("remember", remember.Remember, Reach.SCOPE, names=_VALIDITY, result="memory", short=True),
        VerbEntry("correct", remember.Correct, Reach.SCOPE, names=_VALIDITY, result="memory", short=True),
        VerbEntry("revert", revert.Revert, Reach.SCOPE, result="memory", short=True),
        VerbEntry("forget_preview", forget.PreviewForget, Reach.SCOPE, positional=("ids",), hidden=_IN_SCOPE),
        VerbEntry("forget", forget.Forget, Reach.SCOPE, positional=("ids",), hidden=_IN_SCOPE),
        VerbEntry("add_resource", resources.AddResource, Reach.SCOPE),
        VerbEntry("resource", resources.GetResource, Reach.SCOPE),
        VerbEntry("resources", resources.ListResources, Reach.SCOPE),
        VerbEntry("delete_resource", resources.DeleteResource, Reach.SCOPE),
        VerbEntry("create_user", users.CreateUser, Reach.SPACE, hidden=("rotate", "must_exist")),
        VerbEntry(
            "rotate_user",
            users.CreateUser,
            Reach.SPACE,
            hidden=("presented_key", "rotate", "must_exist"),
            constants={"rotate": True, "must_exist": True},
            doc=_ROTATE_DOC,
        ),
        VerbEntry("revoke_user", users.RevokeUser, Reach.SPACE),
        VerbEntry("users", users.ListUsers, Reach.SPACE),
        VerbEntry("jobs", store_maintenance.ListJobs, Reach.SCOPE),
        VerbEntry("stats", store_maintenance.GetStats, Reach.SCOPE),
        VerbEntry("events", events.ListEvents, Reach.SCOPE),
        VerbEntry("verify", store_maintenance.Verify, Reach.STORE),
        VerbEntry("rebuild", store_maintenance.Rebuild, Reach.STORE),
        VerbEntry("drain", store_maintenance.Drain, Reach.STORE),
    )
}
