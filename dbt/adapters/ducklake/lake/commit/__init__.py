"""The commit: the commit protocol, and the rows of the new snapshot.

A commit writes the difference between the staged state and the base state. It does not replay statements.
"""
