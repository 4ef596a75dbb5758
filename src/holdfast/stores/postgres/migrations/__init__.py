"""The steps of the schema, numbered from one. Never changed once released."""
