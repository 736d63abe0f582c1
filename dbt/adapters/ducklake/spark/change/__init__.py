"""Row-level changes: which rows a statement changes, and which files and deletes that makes.

Imports `write`, `read`, `sql` and `lake`. One module a statement: insert, delete, update, merge, overwrite, rollback.
Each stages its result in the transaction of its `CommandContext` and commits nothing.
"""
