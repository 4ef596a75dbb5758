"""Public pages for people: `/`, which says what this is, and `/docs`, the reference of the API.

They are written on the server, without scripts, and load nothing: the style sheet is in the page, and the
Content-Security-Policy names its hash. They show nothing of the store.
"""
