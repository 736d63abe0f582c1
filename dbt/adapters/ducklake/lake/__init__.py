"""The DuckLake format: the catalog, snapshots, transactions, files and statistics. It imports no Spark and no dbt.

Modules are the nouns of the specification. `commit/` writes a snapshot, `databases/` has one class a catalog database.
"""
