"""Translates queries between Spark's SQL and DuckDB's, where their meaning is the same.

A query is parsed with the names of functions as they are written, every name is resolved, and every expression gets the
type that it has in the engine of its author. Rules then write it for the other engine: one for each operator, cast and
function, and for the types of its arguments. What has no rule is not translated: `Untranslatable` says why.

A rule gives the same value in both engines for every value of its arguments, or an error in the engine that it is
written for. `tests/interop/test_translation.py` runs both sides of each rule.

* `parsing`, `scopes`, `queries`, `signatures`: what both directions share
* `to_duckdb`, `to_spark`: the rules of each direction
"""
