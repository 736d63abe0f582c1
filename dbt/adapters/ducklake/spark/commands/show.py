"""SHOW and DESCRIBE: answered from the catalog alone, with the columns that Spark returns."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from ...lake import tables as t
from ...lake.errors import LakeError
from ...lake.missing_names import lake_not_found
from ...lake.partition_values import hive_folder
from ...lake.snapshot import LakeState, Parameter, Table, View
from ...lake.sorting import SortKey
from ...lake.types import Column
from ..read.context import QueryContext
from ..sql import statements as st
from ..sql.defaults import default_sql
from ..sql.functions import is_written_in_spark, spark_definition
from ..sql.quoting import quoted, string_literal
from ..sql.translation.to_spark.macros import UNTYPED
from ..sql.types import query_type
from ..sql.views import view_definition


def _result(
    names: Sequence[str], rows: Sequence[Sequence[Any]], types: Mapping[str, pa.DataType] | None = None
) -> pa.Table:
    """A result with these columns, which are strings unless `types` says otherwise."""
    given = types or {}
    return pa.table({n: pa.array([r[i] for r in rows], given.get(n, pa.string())) for i, n in enumerate(names)})


def _matches(name: str, pattern: str | None) -> bool:
    """Whether a name matches a Spark pattern: `*` or `%` for any text, `|` between alternatives."""
    if pattern is None:
        return True
    return any(fnmatch.fnmatchcase(name.lower(), p.strip().lower().replace("%", "*")) for p in pattern.split("|"))


def _resolve_schema(context: QueryContext, name: Sequence[str] | None) -> tuple[LakeState, str, str]:
    """The state of a lake, and the names of the lake and the schema; the current ones without a name."""
    if name is None:
        return context.transaction_on(context.current_lake).state, context.current_lake, context.current_schema
    lake = context.current_lake
    if len(name) == 2:
        lake = name[0].lower()
    if lake not in context.lakes:
        raise lake_not_found(name[0], context.lakes)
    return context.transaction_on(lake).state, lake, context.schema(context.lakes[lake], name[-1]).name


def _show_schemas(context: QueryContext, statement: st.ShowSchemas) -> pa.Table:
    lake = statement.catalog[0].lower() if statement.catalog else context.current_lake
    if lake not in context.lakes:
        raise lake_not_found(lake, context.lakes)
    names = sorted(s.name for s in context.transaction_on(lake).state.schemas.values())
    return _result(["namespace"], [[n] for n in names if _matches(n, statement.pattern)])


def _show_tables(context: QueryContext, statement: st.ShowTables) -> pa.Table:
    state, _, schema = _resolve_schema(context, statement.schema)
    found = sorted(r.name for r in state.relations_in(state.schema(schema)))
    rows = [[schema, n, False] for n in found if _matches(n, statement.pattern)]
    return _result(["namespace", "tableName", "isTemporary"], rows, {"isTemporary": pa.bool_()})


def _show_views(context: QueryContext, statement: st.ShowViews) -> pa.Table:
    state, _, schema = _resolve_schema(context, statement.schema)
    found = sorted(r.name for r in state.relations_in(state.schema(schema)) if isinstance(r, View))
    rows = [[schema, n, False] for n in found if _matches(n, statement.pattern)]
    return _result(["namespace", "viewName", "isTemporary"], rows, {"isTemporary": pa.bool_()})


def _show_table_extended(context: QueryContext, statement: st.ShowTableExtended) -> pa.Table:
    state, lake, schema = _resolve_schema(context, statement.schema)
    rows = []
    for relation in sorted(state.relations_in(state.schema(schema)), key=lambda r: r.name):
        if not _matches(relation.name, statement.pattern):
            continue
        details = {
            "Catalog": lake,
            "Database": schema,
            "Table": relation.name,
            "Type": "MANAGED" if isinstance(relation, Table) else "VIEW",
            "Provider": "ducklake",
        }
        if isinstance(relation, Table):
            details["Location"] = state.table_folder(context.lakes[lake].catalog.data_path, relation)
        if relation.comment:
            details["Comment"] = relation.comment
        text = "\n".join(f"{k}: {v}" for k, v in details.items())
        if isinstance(relation, Table):
            text += "\nSchema: root\n" + "".join(
                f" |-- {c.name}: {query_type(c).simpleString()} (nullable = {str(c.nulls_allowed).lower()})\n"
                for c in relation.columns
            )
        rows.append([schema, relation.name, False, text])
    return _result(["namespace", "tableName", "isTemporary", "information"], rows, {"isTemporary": pa.bool_()})


def _show_columns(context: QueryContext, statement: st.ShowColumns) -> pa.Table:
    _, _, relation = context.relation(statement.name)
    return _result(["col_name"], [[c.name] for c in _require_table(relation).columns])


def _require_table(relation: Table | View) -> Table:
    if isinstance(relation, View):
        raise LakeError(
            f"{relation.name} is a view, whose columns are known when it is queried: use DESCRIBE QUERY SELECT * FROM"
            f" {relation.name}"
        )
    return relation


def _describe_table(context: QueryContext, statement: st.DescribeTable) -> pa.Table:
    lake, state, relation = context.relation(statement.name)
    if isinstance(relation, View):
        details = [
            ["# View Text", view_definition(relation, state, lake.name), ""],
            ["# Dialect", relation.dialect, ""],
        ]
        if relation.comment:
            details.append(["Comment", relation.comment, ""])
        return _result(["col_name", "data_type", "comment"], details)
    if statement.column:
        column = relation.column(*statement.column)
        details = [
            ["col_name", column.name],
            ["data_type", query_type(column).simpleString()],
            ["comment", column.comment or "NULL"],
            ["lake_type", column.type_text()],
            ["column_id", str(column.id)],
        ]
        return _result(["info_name", "info_value"], details)
    rows: list[list[str | None]] = [[c.name, query_type(c).simpleString(), c.comment] for c in relation.columns]
    names = {c.id: c.name for c in relation.columns}
    if relation.partition:
        rows += [["", "", ""], ["# Partitioning", "", ""]]
        rows += [
            [f"Part {f.index}", partition_key_text(str(f.transform), names[f.column_id]), ""]
            for f in relation.partition.fields
        ]
    if relation.sort:
        rows += [["", "", ""], ["# Sort Order", "", ""]]
        rows += [[f"Key {i}", sort_key_text(k), ""] for i, k in enumerate(relation.sort.keys)]
    if statement.extended:
        rows += [["", "", ""], ["# Detailed Table Information", "", ""]]
        options = context.transaction_on(lake.name).options
        details = [
            ["Catalog", lake.name],
            ["Database", state.schema_of(relation).name],
            ["Table", relation.name],
            ["Table Id", str(relation.id)],
            ["Table UUID", str(relation.uuid)],
            ["Comment", relation.comment or ""],
            ["Location", state.table_folder(lake.catalog.data_path, relation)],
            ["Provider", "ducklake"],
            ["Not Null", ", ".join(c.name for c in relation.columns if not c.nulls_allowed)],
            ["Table Properties", _properties_text(_properties(relation, options.values))],
        ]
        rows += [[name, value, ""] for name, value in details if value]
    return _result(["col_name", "data_type", "comment"], rows)


def partition_key_text(transform: str, column: str) -> str:
    """A partition key as DDL writes it."""
    if transform == "identity":
        return column
    if transform.startswith("bucket("):
        return f"{transform[:-1]}, {column})"
    return f"{transform}({column})"


def sort_key_text(key: SortKey) -> str:
    """A sort key as DDL writes it."""
    return f"{key.expression} {'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"


def _describe_schema(context: QueryContext, statement: st.DescribeSchema) -> pa.Table:
    state, lake, schema_name = _resolve_schema(context, statement.name)
    schema = state.schema(schema_name)
    rows = [["Catalog Name", lake], ["Namespace Name", schema.name], ["Comment", schema.comment or ""]]
    return _result(["info_name", "info_value"], rows)


def _properties(relation: Table | View, options: Mapping[Any, str]) -> dict[str, str]:
    result = {k: v for k, v in relation.tags if k != "comment"}
    if isinstance(relation, Table):
        result |= {name: value for (scope, i, name), value in options.items() if (scope, i) == ("table", relation.id)}
    return dict(sorted(result.items()))


def _properties_text(properties: Mapping[str, str]) -> str:
    return ", ".join(f"{k}={v}" for k, v in properties.items())


def _show_properties(context: QueryContext, statement: st.ShowProperties) -> pa.Table:
    lake, _, relation = context.relation(statement.name)
    properties = _properties(relation, context.transaction_on(lake.name).options.values)
    if statement.key is not None:
        value = properties.get(statement.key)
        if value is None:
            value = f"Table {'.'.join(statement.name)} does not have property: {statement.key}"
        return _result(["key", "value"], [[statement.key, value]])
    return _result(["key", "value"], list(properties.items()))


def _show_create_table(context: QueryContext, statement: st.ShowCreateTable) -> pa.Table:
    lake, state, relation = context.relation(statement.name)
    name = ".".join(quoted(p) for p in (lake.name, state.schema_of(relation).name, relation.name))
    if isinstance(relation, View):
        columns = f" ({', '.join(map(quoted, relation.column_aliases))})" if relation.column_aliases else ""
        text = f"CREATE VIEW {name}{columns} AS\n{view_definition(relation, state, lake.name)}"
        return _result(["createtab_stmt"], [[text]])
    lines = ",\n".join("  " + _column_text(c) for c in relation.columns)
    text = f"CREATE TABLE {name} (\n{lines})"
    names = {c.id: c.name for c in relation.columns}
    if relation.partition:
        keys = ", ".join(
            partition_key_text(str(f.transform), quoted(names[f.column_id])) for f in relation.partition.fields
        )
        text += f"\nPARTITIONED BY ({keys})"
    if relation.sort:
        text += f"\nSORTED BY ({', '.join(map(sort_key_text, relation.sort.keys))})"
    if relation.comment:
        text += f"\nCOMMENT {string_literal(relation.comment)}"
    properties = _properties(relation, context.transaction_on(lake.name).options.values)
    if properties:
        pairs = ", ".join(f"{string_literal(k)} = {string_literal(v)}" for k, v in properties.items())
        text += f"\nTBLPROPERTIES ({pairs})"
    return _result(["createtab_stmt"], [[text]])


def _column_text(column: Column) -> str:
    text = f"{quoted(column.name)} {query_type(column).simpleString()}"
    if not column.nulls_allowed:
        text += " NOT NULL"
    if column.default_value is not None:
        text += f" DEFAULT {default_sql(column)}"
    if column.comment:
        text += f" COMMENT {string_literal(column.comment)}"
    return text


def _show_partitions(context: QueryContext, statement: st.ShowPartitions) -> pa.Table:
    lake, _, relation = context.relation(statement.name)
    table = _require_table(relation)
    if table.partition is None:
        raise LakeError(f"table {table.name} is not partitioned")
    snapshot_id = context.transaction_on(lake.name).base.id
    names = {c.id: c.name for c in table.columns}
    keys = [f.transform.hive_key(names[f.column_id], ()) for f in table.partition.fields]
    data, partition_value = t.data_file, t.file_partition_value
    query = (
        sa.select(data.c.data_file_id, partition_value.c.partition_value)
        .join(partition_value, partition_value.c.data_file_id == data.c.data_file_id)
        .where(data.c.table_id == table.id, t.alive(data, snapshot_id), data.c.partition_id == table.partition.id)
        .order_by(data.c.data_file_id, partition_value.c.partition_key_index)
    )
    values_by_file: dict[int, list[str | None]] = {}
    with lake.catalog.read() as connection:
        for row in connection.execute(query):
            values_by_file.setdefault(row.data_file_id, []).append(row.partition_value)
    partitions = {
        "/".join(hive_folder(key, value) for key, value in zip(keys, values, strict=False))
        for values in values_by_file.values()
    }
    return _result(["partition"], [[p] for p in sorted(partitions)])


def _show_functions(context: QueryContext, statement: st.ShowUserFunctions) -> pa.Table:
    state, lake, schema = _resolve_schema(context, statement.schema)
    names = sorted(macro.name for macro in state.macros_in(state.schema(schema)))
    found = [f"{lake}.{schema}.{name}" for name in names if _matches(name, statement.pattern)]
    return _result(["function"], [[name] for name in found])


def _describe_function(context: QueryContext, statement: st.DescribeFunction) -> pa.Table:
    found = context.find_macro(statement.name)
    if found is None:
        raise LakeError(f"there is no function {'.'.join(statement.name)}")
    lake, schema, macro = found
    tags = dict(macro.tags)
    lines = [f"Function: {lake.name}.{schema}.{macro.name}", f"Type: {macro.kind.upper()}"]
    if is_written_in_spark(macro.tags):
        signature, body = spark_definition(tags)
        lines += ["Language: Spark SQL", f"Signature: {signature}", f"Body: {body}"]
    else:
        lines.append("Language: DuckDB SQL, a macro whose parameters take the types of the arguments")
        for impl in macro.impls:
            lines += [f"Input: ({', '.join(map(_parameter_text, impl.parameters))})", f"Body: {impl.sql}"]
    if tags.get("comment"):
        lines.append(f"Comment: {tags['comment']}")
    return _result(["function_desc"], [[line] for line in lines])


def _parameter_text(parameter: Parameter) -> str:
    """A parameter of a macro, as DuckDB writes it."""
    text = parameter.name if parameter.type in (None, UNTYPED) else f"{parameter.name} {parameter.type}"
    if parameter.default is None:
        return text
    is_text = parameter.default_type == "varchar"
    return f"{text} := {string_literal(parameter.default) if is_text else parameter.default}"


SHOW_COMMANDS: Mapping[type, Callable[[QueryContext, Any], pa.Table]] = {
    st.ShowSchemas: _show_schemas,
    st.ShowTables: _show_tables,
    st.ShowViews: _show_views,
    st.ShowTableExtended: _show_table_extended,
    st.ShowColumns: _show_columns,
    st.ShowCreateTable: _show_create_table,
    st.ShowProperties: _show_properties,
    st.ShowPartitions: _show_partitions,
    st.DescribeTable: _describe_table,
    st.DescribeSchema: _describe_schema,
    st.ShowUserFunctions: _show_functions,
    st.DescribeFunction: _describe_function,
}
