"""The schema's migrations, in order. A released step is never changed."""
