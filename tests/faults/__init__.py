"""What breaks things on purpose, for the tests of everything that must survive it.

    zygote     processes that cost little to start, and to kill
    points     what happens at a failpoint of the product
    places     where a store can be, per kind of store: somewhere to make, reopen, break and look at one
    writers    concurrent random work that says what it does before and what it was promised after
    ledger     what a store was promised, and a check that holds it to that
    disk       a shim that fails the k-th call on files or connections, or keeps what was synced; disks of a given size
    snapshot   all that a store holds, as one value to compare

`docs/explanation/reliability.md` says how a test is made of these.
"""
