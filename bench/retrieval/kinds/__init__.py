"""Data of other kinds than conversations, made from public packages: the full pipeline against plain rankings.

Its questions are not written by people: a heading asks for the text below it, the first line of a docstring or comment
for its code, each removed from the searched text. Run it with `python -m bench.retrieval.kinds`.
"""
