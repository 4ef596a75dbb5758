"""Data of other kinds than conversations, made of public packages: the full pipeline against plain rankings.

Nobody wrote questions for it: a heading asks for the text below it, the first line of a docstring or comment for its
code, each taken out of the text that is searched. Run it with `python -m bench.retrieval.kinds`.
"""
