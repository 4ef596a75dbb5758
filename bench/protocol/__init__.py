"""Measurements of the Model Context Protocol: the choice of tools by a small model, and the cost of the transport."""
