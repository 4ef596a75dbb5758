"""The programs that can use this memory over the Model Context Protocol, and edits of their configuration files.

An edit changes the exact span of one entry: comments, formatting and other servers stay byte for byte as they are. A
file that cannot be read is left as it was, with an error that says what to add by hand.
"""
