"""Repositories of a transaction: one port per noun, each a reader, and a writer that extends it.

All repositories of a transaction share its snapshot and its grant. What the grant does not reach is treated as missing.
"""
