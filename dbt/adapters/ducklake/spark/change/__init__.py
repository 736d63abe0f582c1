"""Row-level changes: which rows a statement changes, and the data files and deletes that result.

Imports `write`, `read`, `sql` and `lake`. One module per statement (insert, delete, update, merge, overwrite,
rollback); the others are what several of them share. Each statement stages its changes in the transaction of its
`CommandContext` and commits nothing.

A change is a query over the target table that also returns each row's position (`target`). `row_positions` collects
the positions, `row_deletion` turns them into ended files or position deletes (`position_deletes`), and new versions
of rows are written with the row ids of the old ones.

"""
