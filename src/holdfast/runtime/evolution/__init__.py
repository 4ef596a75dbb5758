"""Proposals of agents and hosts: validated, stored, and written only when an operator approves them."""
