"""From DataFrames to data files: layout, Spark's own Parquet writer, and the statistics of the files written.

Imports `read`, `sql` and `lake`. The files belong to no snapshot until a transaction that lists them commits.
"""
