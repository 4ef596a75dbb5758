"""The library's methods, written from the table of its verbs."""
