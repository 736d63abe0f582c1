"""From names in a query to DataFrames: name resolution, planned scans, time travel, change feed, table functions.

Imports `sql`, `engine` and `lake`. Reads with Spark's own Parquet scan; row data never passes through Python.
Nothing here changes a lake.
"""
