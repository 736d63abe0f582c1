"""From Spark's SQL to DuckDB's: the rules, and the translator that applies them.

* `casts`, `arithmetic`: operators and CAST, by the types of their operands
* `texts`, `times`, `numbers`, `collections`: functions, in tables where one line says it all
* `aggregates`: aggregate and window functions
"""
