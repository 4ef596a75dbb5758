"""The reader that all SQL stores share: one repository per noun, on one scope."""

from __future__ import annotations

from holdfast.stores.sql.aliases import SqlAliasReader
from holdfast.stores.sql.bindings import SqlBindingReader
from holdfast.stores.sql.costs import SqlCostReader
from holdfast.stores.sql.deliveries import SqlDeliveryReader
from holdfast.stores.sql.events import SqlEventReader
from holdfast.stores.sql.grant_scope import GrantScope, Lazy
from holdfast.stores.sql.index import SqlIndexReader
from holdfast.stores.sql.jobs import SqlJobReader
from holdfast.stores.sql.maintenance import SqlMaintenanceReader
from holdfast.stores.sql.operations import SqlOperationReader
from holdfast.stores.sql.proposals import SqlProposalReader
from holdfast.stores.sql.records.reader import SqlRecordReader
from holdfast.stores.sql.resources import SqlResourceReader
from holdfast.stores.sql.skills import SqlSkillReader
from holdfast.stores.sql.tools import SqlToolReader
from holdfast.stores.sql.transcripts.reader import SqlTranscriptReader
from holdfast.stores.sql.users import SqlUserReader


class SqlReader:
    """Implements `ports.Reader`."""

    records = Lazy(SqlRecordReader)
    index = Lazy(SqlIndexReader)
    transcripts = Lazy(SqlTranscriptReader)
    aliases = Lazy(SqlAliasReader)
    resources = Lazy(SqlResourceReader)
    skills = Lazy(SqlSkillReader)
    proposals = Lazy(SqlProposalReader)
    tools = Lazy(SqlToolReader)
    users = Lazy(SqlUserReader)
    bindings = Lazy(SqlBindingReader)
    deliveries = Lazy(SqlDeliveryReader)
    operations = Lazy(SqlOperationReader)
    costs = Lazy(SqlCostReader)
    jobs = Lazy(SqlJobReader)
    events = Lazy(SqlEventReader)
    maintenance = Lazy(SqlMaintenanceReader)

    def __init__(self, scope: GrantScope) -> None:
        self.scope = scope
