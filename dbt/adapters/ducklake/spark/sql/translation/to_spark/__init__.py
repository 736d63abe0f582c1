"""From DuckDB's SQL to Spark's: the rules, and the translator that applies them.

DuckDB stores the query of a view in words of its own: `count_star()` for `count(*)`, `~~` for LIKE.
"""
