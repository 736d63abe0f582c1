"""The result of a statement."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame

from .engine.errors import errors_in_author_words


@dataclass(frozen=True)
class Result:
    """What a statement changed, or the rows that it returns."""

    snapshot_id: int | None = None
    """The snapshot that the statement committed; None inside a transaction, and for queries."""
    is_staged: bool = False
    """Whether something was changed in the shared transaction, which is committed later."""
    rows_affected: int = 0
    notes: tuple[str, ...] = ()
    """What is to be known besides, such as `Spark only` of a view that DuckDB cannot query."""
    table: pa.Table | None = field(default=None, repr=False)
    """The rows of a statement that needs no Spark, such as SHOW TABLES."""
    dataframe: DataFrame | None = field(default=None, repr=False)
    """The rows of a query. Spark computes them when they are read."""

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        if self.table is not None:
            return self.table
        if self.dataframe is not None:
            with errors_in_author_words():
                return self.dataframe.toArrow()
        return pa.table({})

    def stream(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow record batches."""
        return self.arrow().to_reader()
