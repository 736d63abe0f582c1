"""Names of a query that neither a lake nor Spark knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession

from ...lake.errors import NotFoundError
from ..sql.names import CallRef, RelationRef
from ..sql.quoting import quoted_name
from .context import QueryContext

_CONDITIONS = {
    "TABLE_OR_VIEW_NOT_FOUND",
    "REQUIRES_SINGLE_PART_NAMESPACE",
    "SCHEMA_NOT_FOUND",
    "CATALOG_NOT_FOUND",
}
"""The conditions of Spark's errors about a relation that it does not know."""


def check_full_names(
    spark: Callable[[], SparkSession], refs: Sequence[RelationRef] | Sequence[CallRef], context: QueryContext
) -> None:
    """Raises if a name that no lake has begins with a lake's name, unless Spark has a catalog of that name.

    Spark would take the name for one of its own catalog, and only say that it has too many parts.
    """
    for ref in refs:
        if len(ref.parts) >= 3 and ref.parts[0].lower() in context.lakes and not _is_catalog(spark(), ref.parts[0]):
            is_relation = isinstance(ref, RelationRef)
            raise context.not_found(ref.parts) if is_relation else context.function_not_found(ref.parts)


def missing_relation(
    error: AnalysisException, spark: SparkSession, relations: Sequence[RelationRef], context: QueryContext
) -> NotFoundError | None:
    """The error to show for one of Spark's, if that is about a name that a lake could have.

    `relations` are those that were left to Spark.
    """
    if error.getCondition() not in _CONDITIONS:
        return None
    missing = {name.lower() for name in (error.getMessageParameters() or {}).values()}
    ref = next((ref for ref in relations if quoted_name(ref.parts).lower() in missing), None)
    if ref is None:
        return None
    first = ref.parts[0]
    if len(ref.parts) == 1 or (len(ref.parts) == 2 and context.has_schema(first)):
        return context.not_found(ref.parts)
    if first.lower() == "global_temp" or _is_catalog(spark, first):
        return None
    in_spark = len(ref.parts) == 2 and spark.catalog.databaseExists(first)
    return context.not_found(ref.parts, f" nor in Spark's database {first}" if in_spark else "")


def sql_of_spark(spark: SparkSession, text: str, parts: Sequence[str], context: QueryContext) -> DataFrame:
    """Runs a statement about a table that no lake has in Spark. Raises the lake's error if Spark has no such table."""
    try:
        return spark.sql(text)
    except AnalysisException as error:
        # Spark alone cannot parse the statements of other table formats, nor read their paths as names.
        is_missing = error.getCondition() in _CONDITIONS or not _has_table(spark, parts)
        if is_missing and (len(parts) != 2 or context.has_schema(parts[0]) or isinstance(error, ParseException)):
            raise context.not_found(parts) from None
        raise


def _has_table(spark: SparkSession, parts: Sequence[str]) -> bool:
    try:
        return spark.catalog.tableExists(quoted_name(parts))
    except AnalysisException:  # such as one about the name's catalog
        return False


def _is_catalog(spark: SparkSession, name: str) -> bool:
    return name.lower() == "spark_catalog" or spark.conf.get(f"spark.sql.catalog.{name}", None) is not None
