"""One line of JSON per request: when, which, how it ended, how long and how much. Never a body, a query, a path as it
was sent, a key or a user: what is not written cannot leak."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from holdfast.gateway.edge.exchange import Exchange
from holdfast.gateway.edge.metrics import GONE

log = logging.getLogger("holdfast.gateway.requests")


class RequestLog:
    def began(self, exchange: Exchange) -> None:
        """Nothing is known yet."""

    def ended(self, exchange: Exchange) -> None:
        level = logging.ERROR if exchange.error is not None else logging.INFO
        if not log.isEnabledFor(level):
            return
        fields: dict[str, object] = {
            "id": exchange.id,
            "method": exchange.method,
            "route": exchange.route,
            "status": exchange.status or GONE,
            "ms": round(exchange.seconds * 1000, 2),
            "bytes_in": exchange.received,
            "bytes_out": exchange.sent,
        }
        if exchange.error is not None:
            fields["error"] = exchange.error
        elif exchange.refusal is not None:
            fields["refused"] = exchange.refusal.code
        if not exchange.complete:
            fields["cut"] = True
        # Made here, since `log.log` would walk the stack for a place in the code that says nothing.
        record = logging.LogRecord(log.name, level, "", 0, "request", None, None)
        record.fields = fields
        log.handle(record)


class JsonLines(logging.Formatter):
    """A record as one line of JSON; `extra={"fields": {…}}` comes on top. Of an exception only its name is written."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line: dict[str, object] = {"time": moment, "level": record.levelname.lower(), "event": record.getMessage()}
        if not record.name.startswith("holdfast.gateway"):
            line["logger"] = record.name
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            line.update(fields)
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return json.dumps(line, ensure_ascii=True, separators=(",", ":"), default=str)
