"""Folders of Agent Skills, for the agent and for runtimes: one reader, which follows no link and runs nothing."""
