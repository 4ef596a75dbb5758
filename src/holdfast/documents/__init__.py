"""Files to text in pieces: plain text, markdown, HTML, PDF and DOCX.

Files come from strangers, and the libraries that read them are large. So `reader` finds out what a file is without any
of them, and everything but plain text is then read by a process of its own (`__main__`), which `confinement` keeps
small and poor. What comes back is a list of blocks, checked again, and cut into chunks (`chunking`).
"""
