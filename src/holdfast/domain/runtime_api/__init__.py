"""Requests and reports of the runtime's operations: frozen values without behaviour."""
