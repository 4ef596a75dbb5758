"""EverOS's four routes, for clients that were written for it: `/api/v2/memory/*`, and `/api/v1/memory/*` beside it."""
