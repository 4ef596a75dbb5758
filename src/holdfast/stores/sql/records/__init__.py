"""The repository of records: reading, writing, planning a forget and carrying it out."""
