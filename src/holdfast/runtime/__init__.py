"""The verbs, a file each, behind one gate: `perform`."""
