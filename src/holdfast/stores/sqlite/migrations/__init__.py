"""The steps that made the schema what it is, in order. A step is never changed once it was released."""
