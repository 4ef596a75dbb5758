"""The request log: one line of JSON per request with time, route, status, duration and bytes. Never a body, query, raw
path, key or user: what is not written cannot leak."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from functools import lru_cache

from holdfast.gateway.edge.exchange import Exchange
from holdfast.gateway.edge.metrics import GONE

log = logging.getLogger("holdfast.gateway.requests")
# One encoder: `json.dumps` would create one per line.
_encoded = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"), default=str).encode
_quoted = lru_cache(maxsize=1_000)(_encoded)


class RequestLog:
    def on_start(self, exchange: Exchange) -> None:
        """Log nothing: a request is logged when it ends."""

    def on_end(self, exchange: Exchange) -> None:
        level = logging.ERROR if exchange.error is not None else logging.INFO
        if not log.isEnabledFor(level):
            return
        # Formatted by hand at a third of the cost: ids need no quoting, and all other texts are few and cached.
        line = (
            f'"id":"{exchange.id}","method":{_quoted(exchange.method)},"route":{_quoted(exchange.route)},'
            f'"status":{exchange.status or GONE},"ms":{exchange.seconds * 1000:.2f},'
            f'"bytes_in":{exchange.received},"bytes_out":{exchange.sent}'
        )
        if exchange.error is not None:
            line += f',"error":{_quoted(exchange.error)}'
        elif exchange.refusal is not None:
            line += f',"refused":{_quoted(exchange.refusal.code)}'
        if not exchange.complete:
            line += ',"cut":true'
        # Not `log.log`, which would walk the stack for the caller's line.
        record = logging.LogRecord(log.name, level, "", 0, "request", None, None)
        record.members = line
        log.handle(record)


class JsonFormatter(logging.Formatter):
    """Formats a record as one line of JSON, plus `extra={"fields": {…}}`. Of an exception only its class is written."""

    def format(self, record: logging.LogRecord) -> str:
        seconds, milliseconds = divmod(int(record.created * 1000), 1000)
        moment = f"{_second(seconds)}.{milliseconds:03d}Z"
        level = record.levelname.lower()
        members: str | None = getattr(record, "members", None)
        if members is not None:
            return f'{{"time":"{moment}","level":"{level}","event":"{record.msg}",{members}}}'
        line: dict[str, object] = {"time": moment, "level": level, "event": record.getMessage()}
        if not record.name.startswith("holdfast.gateway"):
            line["logger"] = record.name
        fields = getattr(record, "fields", None)
        if isinstance(fields, Mapping):
            line.update(fields)
        if record.exc_info and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        return _encoded(line)


@lru_cache(maxsize=4)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
