"""INSERT: by position, by name, with a schema merge, and as an overwrite."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as s

from ...lake.errors import NotFoundError, SchemaChangeError
from ...lake.snapshot import Table
from ...lake.types import find_path
from ..change.command_context import CommandContext
from ..change.overwrite import replaced_insert
from ..change.schema_merge import take_up
from ..sql import statements as st
from ..sql.defaults import default_sql

# -- rows


def insert(context: CommandContext, statement: st.Insert) -> int:
    table = context.table(statement.name)
    rows = context.query(statement.full_query)
    if statement.schema_evolution:
        table = take_up(context, table, _named(rows, table, statement))
    rows = _shaped(rows, table, statement)
    return replaced_insert(context, statement, table, rows) if statement.replaces else context.write(rows, table)


def _named(rows: DataFrame, table: Table, statement: st.Insert) -> list[s.StructField]:
    """The columns of a query as the table calls them; those beyond its own keep their names."""
    wanted = _wanted(rows.columns, table, statement)
    if statement.columns is not None:
        for name in wanted:
            table.column(name)  # who lists columns says what there is
    names = [*wanted, *rows.columns[len(wanted) :]]
    return [s.StructField(name, f.dataType) for name, f in zip(names, rows.schema.fields, strict=False)]


def _wanted(names: list[str], table: Table, statement: st.Insert) -> list[str]:
    """The columns of the table that a query of columns of these names is for."""
    if statement.by_name:
        return names
    if statement.columns is not None:
        return list(statement.columns)
    return [c.name for c in table.columns if c.name.lower() not in _static(statement)]


def _static(statement: st.Insert) -> dict[str, str]:
    """The values that PARTITION gives, by columns in lower case."""
    return {p.column.lower(): p.expression for p in statement.partition if p.expression is not None}


def _shaped(rows: DataFrame, table: Table, statement: st.Insert) -> DataFrame:
    """The rows of a query as the columns of a table: by position, or by name; defaults for the rest."""
    static, names = _static(statement), rows.columns
    wanted = _wanted(names, table, statement)
    if len(wanted) != len(names):
        given = ", ".join(names)
        raise SchemaChangeError(
            f"table {table.name} takes {len(wanted)} columns here ({', '.join(wanted)}), but the query gives"
            f" {len(names)} ({given}); list the columns, or use INSERT INTO ... BY NAME"
        )
    position: dict[str, int] = {}
    for index, name in enumerate(wanted):
        column = find_path(table.columns, (name,))
        if column is None:
            raise NotFoundError(
                f"table {table.name} has no column {name}; it has {', '.join(c.name for c in table.columns)}"
            )
        if column[0].name in position:
            raise SchemaChangeError(f"column {name} of table {table.name} is given twice")
        position[column[0].name] = index
    rows = rows.toDF(*(f"_lake_{i}" for i in range(len(names))))
    return rows.select(
        *(
            F.col(f"_lake_{position[c.name]}").alias(c.name)
            if c.name in position
            else F.expr(static.get(c.name.lower()) or default_sql(c)).alias(c.name)
            for c in table.columns
        )
    )
