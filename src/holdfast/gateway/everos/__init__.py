"""Routes compatible with EverOS clients: `/api/v2/memory/*` and `/api/v1/memory/*`."""
