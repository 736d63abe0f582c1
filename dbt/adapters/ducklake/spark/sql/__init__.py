"""The text of statements and queries: parsing, rewriting, translation, predicates, types.

Imports `lake` and nothing else of the engine. Every function works on text and values: no SparkSession, no
catalog, no file. A statement becomes a frozen dataclass; a query stays its author's text, with positions of names in it.
"""
