"""SQL text: parsing of statements, names in queries, rewriting, view translation, predicate pushdown, types.

Imports `lake` and nothing else of `spark`. Every function works on text and values: no SparkSession, no catalog, no
file. A statement becomes a frozen dataclass. A query stays the text that its author wrote; what it names is recorded
with positions in that text.

Statements: `statements` (the facade), `ddl`, `alter`, `dml`, `show_statements`, `session_statements`, `definitions`,
    `literals`, `tokens`
Queries: `names`, `name_reader`, `name_resolution`, `query_tokens`, `query_keywords`, `time_travel`, `rewriting`,
    `virtual_columns`
Predicates: `pushdown`, `predicate_literals`, `safe_predicates`
Types and values: `types`, `decoding`, `defaults`, `quoting`
Two dialects, Spark and DuckDB: `views`, `functions`
"""
