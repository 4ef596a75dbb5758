"""The parts of the conformance suite of providers."""
