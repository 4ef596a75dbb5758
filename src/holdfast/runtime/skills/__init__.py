"""The verbs of runtime skills."""
