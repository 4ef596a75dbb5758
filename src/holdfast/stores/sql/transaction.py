"""The transaction that all SQL stores share: one repository per noun, on one scope."""

from __future__ import annotations

from holdfast.stores.sql.aliases import SqlAliasWriter
from holdfast.stores.sql.bindings import SqlBindingWriter
from holdfast.stores.sql.costs import SqlCostWriter
from holdfast.stores.sql.deliveries import SqlDeliveryWriter
from holdfast.stores.sql.events import SqlEventWriter
from holdfast.stores.sql.grant_scope import Lazy
from holdfast.stores.sql.index import SqlIndexWriter
from holdfast.stores.sql.jobs import SqlJobWriter
from holdfast.stores.sql.maintenance import SqlMaintenanceWriter
from holdfast.stores.sql.operations import SqlOperationWriter
from holdfast.stores.sql.proposals import SqlProposalWriter
from holdfast.stores.sql.records.writer import SqlRecordWriter
from holdfast.stores.sql.resources import SqlResourceWriter
from holdfast.stores.sql.skills import SqlSkillWriter
from holdfast.stores.sql.tools import SqlToolWriter
from holdfast.stores.sql.transcripts.writer import SqlTranscriptWriter
from holdfast.stores.sql.users import SqlUserWriter
from holdfast.stores.sql.write_scope import WriteScope


class SqlTransaction:
    """Implements `ports.Transaction`."""

    records = Lazy(SqlRecordWriter)
    index = Lazy(SqlIndexWriter)
    transcripts = Lazy(SqlTranscriptWriter)
    aliases = Lazy(SqlAliasWriter)
    resources = Lazy(SqlResourceWriter)
    skills = Lazy(SqlSkillWriter)
    proposals = Lazy(SqlProposalWriter)
    tools = Lazy(SqlToolWriter)
    users = Lazy(SqlUserWriter)
    bindings = Lazy(SqlBindingWriter)
    deliveries = Lazy(SqlDeliveryWriter)
    operations = Lazy(SqlOperationWriter)
    costs = Lazy(SqlCostWriter)
    jobs = Lazy(SqlJobWriter)
    events = Lazy(SqlEventWriter)
    maintenance = Lazy(SqlMaintenanceWriter)

    def __init__(self, scope: WriteScope) -> None:
        self.scope = scope
