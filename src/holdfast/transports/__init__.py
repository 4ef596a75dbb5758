"""The adapter: a runtime's operations as envelopes, for every transport. It decides nothing about memory."""
