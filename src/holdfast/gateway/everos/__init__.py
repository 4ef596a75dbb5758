"""Routes for clients of EverOS: `/api/v2/memory` and `/api/v1/memory`, and `/api/v1/memories` of its cloud."""
