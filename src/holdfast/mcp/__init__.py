"""The Model Context Protocol: tools, resources and prompts for any client that speaks it, over stdio and HTTP.

Nothing here decides about memory: a tool calls one verb, and the gate does the rest. `server.py` builds a server of the
protocol from a set of tools; `session.py` says for whom it calls.
"""
