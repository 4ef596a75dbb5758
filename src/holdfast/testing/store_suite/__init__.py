"""The parts of `holdfast.testing.store_contract`, by what they are about."""
