"""Languages other than English."""
