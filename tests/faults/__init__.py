"""Fault injection for tests.

    zygote     processes that are cheap to start and to kill
    points     actions at the product's failpoints
    places     locations of a store, per kind of store: create, reopen, break and inspect one
    writers    concurrent random work that reports each call before it and each acknowledgement after it
    ledger     records the promises made about a store and checks that the store keeps them
    disk       a shim that fails the k-th call on files or connections, or keeps what was synced; disks of a given size
    snapshot   the content of a store, as one value to compare

`docs/explanation/reliability.md` explains how to build a test from these.
"""
