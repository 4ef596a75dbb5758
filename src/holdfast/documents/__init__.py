"""Splits files into chunks of text: plain text, markdown, HTML, PDF and DOCX.

Files are untrusted, and the libraries that parse them are large. So `reader` detects the file type without them, and
everything but plain text is parsed in a sandboxed process (`__main__`), which `sandbox` limits. The process returns
a list of blocks, which is validated again and cut into chunks (`chunking`).
"""
