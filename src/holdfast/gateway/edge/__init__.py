"""What stands between the network and the routes: limits, request ids, metrics, logs and spans, as plain ASGI."""
