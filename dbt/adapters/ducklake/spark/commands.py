"""What each statement that changes a lake does to a transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ..lake import evolution as evolve
from ..lake.changes import CommitInfo
from ..lake.errors import (
    AlreadyExistsError,
    ConstraintError,
    LakeError,
    NotFoundError,
    SchemaChangeError,
    UnsupportedError,
)
from ..lake.options import OPTIONS
from ..lake.partitions import Bucket, Transform, parse_transform
from ..lake.paths import spark_target
from ..lake.snapshot import Schema, Table, View
from ..lake.sorting import SortKey
from ..lake.transaction import Transaction
from ..lake.types import Column, find_path
from . import alter as alters
from . import statements as st
from .defaults import default_of, default_sql, initial_default_of
from .definitions import PartitionKey
from .definitions import SortKey as SortKeyText
from .lakes import Lake
from .queries import Context, Planner
from .types import lake_column, quoted
from .views import SPARK_SQL_TAG, duckdb_sql
from .write import Target, sort_expression, write

if TYPE_CHECKING:
    from collections.abc import Sequence

S = TypeVar("S")


@dataclass
class Scope:
    """What a command works with: one lake's transaction, and the planner for its queries."""

    context: Context
    planner: Planner
    transaction: Transaction
    lake: Lake
    in_transaction: bool
    """Whether the statement is one of several that become one snapshot."""

    @property
    def state(self):  # type: ignore[no-untyped-def]
        return self.transaction.state

    def place(self, name: Sequence[str]) -> tuple[Schema, str]:
        """The schema that a name is in, which must be there, and its last part."""
        found = self.context.find(name)
        if found is None or found[0] is not self.lake:
            raise NotFoundError(f"{'.'.join(name)} is no name in lake {self.lake.name}; write schema.table")
        _, schema, last = found
        return self.state.schema(schema), last

    def relation(self, name: Sequence[str]) -> Table | View:
        schema, last = self.place(name)
        found: Table | View = self.state.relation(schema.name, last)
        return found

    def table(self, name: Sequence[str]) -> Table:
        schema, last = self.place(name)
        found: Table = self.state.table(schema.name, last)
        return found

    def find(self, name: Sequence[str]) -> Table | View | None:
        schema, last = self.place(name)
        found: Table | View | None = self.state.find(schema.name, last)
        return found

    def commit_info(self, info: CommitInfo) -> None:
        """Says who commits the running transaction, and why."""
        if not self.in_transaction or self.transaction.parent is None:
            raise LakeError("there is no transaction to give a message to: BEGIN one first")
        self.transaction.commit_info = self.transaction.parent.commit_info = info

    def query(self, sql: str) -> DataFrame:
        return self.planner.query(sql, self.context)

    def write(self, rows: DataFrame, table: Table) -> int:
        """Writes rows into a table of the transaction; says how many they were."""
        known = self.transaction.data(table)
        count = sum(f.record_count for f in known.added)
        per_row = sum(f.file_size_bytes for f in known.added) / count if count else None
        files = write(rows, self.target(table), per_row)
        self.transaction.append(table, files)
        return sum(f.record_count for f in files)

    def target(self, table: Table) -> Target:
        return Target(
            table=table,
            folder=self.state.folder(self.lake.catalog.data_path, table),
            options=self.transaction.options,
            filesystem=self.lake.filesystem,
            native=self.lake.native_path,
            spark_target=spark_target,
        )


# -- schemas


def _create_schema(scope: Scope, statement: st.CreateSchema) -> int:
    name = statement.name[-1]
    if scope.state.find_schema(name) and statement.if_not_exists:
        return 0
    scope.transaction.create_schema(name, statement.comment)
    return 0


def _drop_schema(scope: Scope, statement: st.DropSchema) -> int:
    name = statement.name[-1]
    if scope.state.find_schema(name) is None and statement.if_exists:
        return 0
    scope.transaction.drop_schema(name, statement.cascade)
    return 0


# -- tables


def _create_table(scope: Scope, statement: st.CreateTable) -> int:
    schema, name = scope.place(statement.name)
    found = scope.state.find(schema.name, name)
    if found is not None and statement.if_not_exists:
        return 0
    if found is None and statement.must_exist:
        raise NotFoundError(f"there is no table {schema.name}.{name} to replace; use CREATE OR REPLACE TABLE")
    rows = scope.query(statement.query) if statement.query is not None else None
    columns = _columns(statement, rows, name)
    if found is not None and not (statement.or_replace or statement.must_exist):
        raise AlreadyExistsError(f"{schema.name}.{name} already exists; use CREATE OR REPLACE TABLE, or IF NOT EXISTS")
    if isinstance(found, Table):
        table = scope.transaction.replace_table(found, columns, statement.comment)
    else:
        if found is not None:
            scope.transaction.drop(found)
        table = scope.transaction.create_table(schema, name, columns, statement.comment)
    table = _set_partition(scope, table, statement.partition_keys)
    table = _set_sort(scope, table, statement.sort_keys)
    table = _set_properties(scope, table, dict(statement.properties))
    return scope.write(rows, table) if rows is not None else 0


def _columns(statement: st.CreateTable, rows: DataFrame | None, table: str) -> tuple[Column, ...]:
    """The columns that a statement gives a table, from its list or from its query."""
    if rows is None or statement.columns:
        return tuple(_column(d, table) for d in statement.columns)
    return tuple(lake_column(field) for field in rows.schema.fields)


def _column(definition: Any, table: str) -> Column:
    column: Column = definition.column
    if definition.default is None:
        return column
    value, kind = default_of(definition.default, column, table)
    return replace(
        column,
        default_value=value,
        default_value_type=kind,
        initial_default=value if kind == "literal" else None,
    )


def _create_table_like(scope: Scope, statement: st.CreateTableLike) -> int:
    schema, name = scope.place(statement.name)
    if scope.state.find(schema.name, name) is not None and statement.if_not_exists:
        return 0
    source = scope.table(statement.source)
    table = scope.transaction.create_table(schema, name, source.columns)
    names = {c.id: c.name for c in source.columns}
    if source.partition:
        keys = [(names[f.column_id], f.transform) for f in source.partition.fields]
        table = scope.transaction.alter_table(
            table, lambda t: evolve.set_partition(t, keys, scope.transaction.new_id())
        )
    if source.sort:
        sort_keys = source.sort.keys
        table = scope.transaction.alter_table(
            table, lambda t: evolve.set_sort(t, sort_keys, scope.transaction.new_id())
        )
    _set_properties(scope, table, dict(statement.properties))
    return 0


def _drop(scope: Scope, statement: st.Drop) -> int:
    if statement.if_exists and (
        scope.state.find_schema(scope.context.find(statement.name)[1]) is None  # type: ignore[index]
        or scope.find(statement.name) is None
    ):
        return 0
    relation = scope.relation(statement.name)
    kind = "table" if isinstance(relation, Table) else "view"
    if kind != statement.kind:
        raise NotFoundError(f"{'.'.join(statement.name)} is a {kind}, not a {statement.kind}: use DROP {kind.upper()}")
    scope.transaction.drop(relation)
    return 0


def _truncate(scope: Scope, statement: st.Truncate) -> int:
    scope.transaction.truncate(scope.table(statement.name))
    return 0


def _delete(scope: Scope, statement: st.Delete) -> int:
    if statement.condition is not None:
        raise UnsupportedError("DELETE with a condition is not there yet; write the rows to keep with INSERT OVERWRITE")
    scope.transaction.truncate(scope.table(statement.name))
    return 0


def _rows_not_yet(scope: Scope, statement: st.Update | st.Merge) -> int:
    word = type(statement).__name__.upper()
    raise UnsupportedError(f"{word} is not there yet; write the new content with INSERT OVERWRITE, or a table model")


# -- views


def _create_view(scope: Scope, statement: st.CreateView) -> int:
    schema, name = scope.place(statement.name)
    found = scope.state.find(schema.name, name)
    if found is not None and statement.if_not_exists:
        return 0
    if found is not None and not statement.or_replace:
        raise AlreadyExistsError(f"{schema.name}.{name} already exists; use CREATE OR REPLACE VIEW, or IF NOT EXISTS")
    scope.planner.query(statement.query, scope.context)  # an error in the query is met now, not by its readers
    if found is not None:
        scope.transaction.drop(found)
    _put_view(scope, schema, name, statement.query, tuple(c.name for c in statement.columns), statement)
    return 0


def _put_view(
    scope: Scope,
    schema: Schema,
    name: str,
    query: str,
    columns: tuple[str, ...],
    statement: st.CreateView | None,
) -> None:
    tags = dict(statement.properties) if statement else {}
    if statement and statement.comment is not None:
        tags["comment"] = statement.comment
    translated = duckdb_sql(query, scope.lake.name, scope.context.schema)
    if translated is not None:
        tags[SPARK_SQL_TAG] = query
    scope.transaction.create_view(schema, name, translated or query, "duckdb" if translated else "spark", columns, tags)


# -- rows


def _insert(scope: Scope, statement: st.Insert) -> int:
    table = scope.table(statement.name)
    if statement.schema_evolution:
        raise UnsupportedError("INSERT WITH SCHEMA EVOLUTION is not there yet; add the columns with ALTER TABLE first")
    if statement.replace_where is not None:
        raise UnsupportedError("INSERT ... REPLACE WHERE is not there yet; use INSERT OVERWRITE")
    if statement.overwrite and statement.partition:
        raise UnsupportedError("INSERT OVERWRITE ... PARTITION is not there yet; overwrite the whole table")
    rows = scope.query(statement.full_query)
    rows = _shaped(rows, table, statement)
    if statement.overwrite:
        scope.transaction.truncate(table)
        scope.transaction.rewrites(table)
    return scope.write(rows, table)


def _shaped(rows: DataFrame, table: Table, statement: st.Insert) -> DataFrame:
    """The rows of a query as the columns of a table: by position, or by name; defaults for the rest."""
    static = {p.column.lower(): p.expression for p in statement.partition if p.expression is not None}
    open_columns = [c for c in table.columns if c.name.lower() not in static]
    names = rows.columns
    if statement.by_name:
        wanted = names
    elif statement.columns is not None:
        wanted = list(statement.columns)
    else:
        wanted = [c.name for c in open_columns]
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


# -- ALTER


def _alter(scope: Scope, statement: st.Alter) -> int:
    found = None
    place = scope.context.find(statement.name)
    if place is None or scope.state.find_schema(place[1]) is None or (found := scope.find(statement.name)) is None:
        if statement.if_exists:
            return 0
        found = scope.relation(statement.name)
    for action in statement.actions:
        relation = _again(scope, found)
        if isinstance(relation, View):
            _alter_view(scope, relation, action)
        else:
            _alter_table(scope, relation, action)
    return 0


def _again(scope: Scope, relation: Table | View) -> Table | View:
    """The relation as the transaction has it now."""
    state = scope.transaction.state
    return state.tables[relation.id] if isinstance(relation, Table) else state.views[relation.id]


def _alter_view(scope: Scope, view: View, action: object) -> None:
    schema = scope.state.schema_of(view)
    if isinstance(action, alters.RenameRelation):
        _rename(scope, view, action)
    elif isinstance(action, alters.SetProperties):
        scope.transaction.set_tags(view, tuple(sorted({**dict(view.tags), **dict(action.properties)}.items())))
    elif isinstance(action, alters.UnsetProperties):
        scope.transaction.set_tags(view, tuple(t for t in view.tags if t[0] not in action.names))
    elif isinstance(action, alters.SetViewQuery):
        scope.planner.query(action.query, scope.context)
        scope.transaction.drop(view)
        _put_view(scope, schema, view.name, action.query, (), None)
    else:
        raise SchemaChangeError(f"{schema.name}.{view.name} is a view, and only a table can be changed so")


def _alter_table(scope: Scope, table: Table, action: object) -> None:
    handler = _ALTER.get(type(action))
    if handler is None:
        raise UnsupportedError(
            f"columns of table {table.name} can not be moved: a DuckLake table has its columns in the order in"
            " which they were added; select them in the order you want"
        )
    handler(scope, table, action)


def _rename(scope: Scope, relation: Table | View, action: alters.RenameRelation) -> None:
    name = action.new_name
    schema = scope.state.schema_of(relation) if len(name) == 1 else scope.place(name)[0]
    scope.transaction.rename(relation, schema, name[-1])


def _add_column(scope: Scope, table: Table, action: alters.AddColumn) -> None:
    definition = action.definition
    if action.position is not None:
        raise UnsupportedError(
            f"column {definition.column.name} can not be put at a place: a new column of a DuckLake table comes"
            " last; leave FIRST or AFTER out"
        )
    if action.if_not_exists and find_path(table.columns, (*action.parent, definition.column.name)):
        return
    column = definition.column
    if definition.default is not None:
        value = initial_default_of(definition.default, column, table.name)
        column = replace(column, initial_default=value, default_value=value)
    if not column.nulls_allowed and column.initial_default is None and _has_rows(scope, table):
        raise ConstraintError(
            f"column {column.name} can not be added to table {table.name} as NOT NULL: its rows have no value for"
            " it; give it a DEFAULT"
        )
    ids = scope.transaction.column_ids(table)
    scope.transaction.alter_table(table, lambda t: evolve.add_column(t, action.parent, column, ids))


def _has_rows(scope: Scope, table: Table) -> bool:
    scan = scope.lake.scan(table, scope.transaction.base, scope.state, transaction=scope.transaction)
    return bool(scan.files) or scan.inlined is not None


def _drop_column(scope: Scope, table: Table, action: alters.DropColumn) -> None:
    if action.if_exists and find_path(table.columns, action.path) is None:
        return
    scope.transaction.alter_table(table, lambda t: evolve.drop_column(t, action.path))


def _rename_column(scope: Scope, table: Table, action: alters.RenameColumn) -> None:
    scope.transaction.alter_table(table, lambda t: evolve.rename_column(t, action.path, action.new_name))


def _change_type(scope: Scope, table: Table, action: alters.ChangeType) -> None:
    ids = scope.transaction.column_ids(table)
    scope.transaction.alter_table(table, lambda t: evolve.retype_column(t, action.path, action.type, ids))


def _set_not_null(scope: Scope, table: Table, action: alters.SetNotNull) -> None:
    new = evolve.set_not_null(table, action.path, True)
    column = table.column(*action.path)
    if not column.nulls_allowed:
        return
    name = f"{quoted(scope.lake.name)}.{quoted(scope.state.schema_of(table).name)}.{quoted(table.name)}"
    if _has_rows(scope, table):
        nulls = scope.query(f"select 1 from {name} where {quoted(column.name)} is null limit 1")
        if nulls.collect():
            raise ConstraintError(
                f"column {column.name} of table {table.name} can not be set NOT NULL: some of its rows have no"
                f" value for it; give them one, or look: select * from {name} where {quoted(column.name)} is null"
            )
    scope.transaction.alter_table(table, lambda _: new)
    scope.transaction.rewrites(table)  # a row without a value must not slip in meanwhile


def _drop_not_null(scope: Scope, table: Table, action: alters.DropNotNull) -> None:
    scope.transaction.alter_table(table, lambda t: evolve.set_not_null(t, action.path, False))


def _set_default(scope: Scope, table: Table, action: alters.SetDefault) -> None:
    value, kind = default_of(action.expression, table.column(*action.path), table.name)
    scope.transaction.alter_table(table, lambda t: evolve.set_default(t, action.path, value, kind))


def _drop_default(scope: Scope, table: Table, action: alters.DropDefault) -> None:
    scope.transaction.alter_table(table, lambda t: evolve.set_default(t, action.path, None))


def _comment_column(scope: Scope, table: Table, action: alters.SetColumnComment) -> None:
    scope.transaction.alter_table(table, lambda t: evolve.set_column_comment(t, action.path, action.comment))


def _alter_partition(scope: Scope, table: Table, action: alters.SetPartitionKeys) -> None:
    _set_partition(scope, table, action.keys)


def _alter_sort(scope: Scope, table: Table, action: alters.SetSortKeys) -> None:
    _set_sort(scope, table, action.keys)


def _alter_properties(scope: Scope, table: Table, action: alters.SetProperties) -> None:
    _set_properties(scope, table, dict(action.properties))


def _unset_properties(scope: Scope, table: Table, action: alters.UnsetProperties) -> None:
    for name in action.names:
        if name.lower() in OPTIONS:
            if ("table", table.id, name.lower()) in scope.transaction.options.values or not action.if_exists:
                scope.transaction.set_option(name, None, table=table)
        elif name not in dict(table.tags) and not action.if_exists:
            raise NotFoundError(f"table {table.name} has no property {name}")
    scope.transaction.set_tags(table, tuple(t for t in table.tags if t[0] not in action.names))


_ALTER: Mapping[type, Callable[[Scope, Table, Any], None]] = {
    alters.RenameRelation: _rename,
    alters.AddColumn: _add_column,
    alters.DropColumn: _drop_column,
    alters.RenameColumn: _rename_column,
    alters.ChangeType: _change_type,
    alters.SetNotNull: _set_not_null,
    alters.DropNotNull: _drop_not_null,
    alters.SetDefault: _set_default,
    alters.DropDefault: _drop_default,
    alters.SetColumnComment: _comment_column,
    alters.SetPartitionKeys: _alter_partition,
    alters.SetSortKeys: _alter_sort,
    alters.SetProperties: _alter_properties,
    alters.UnsetProperties: _unset_properties,
}


def _set_partition(scope: Scope, table: Table, keys: Sequence[PartitionKey]) -> Table:
    pairs = [(key.column, _transform(key)) for key in keys]
    new_id = scope.transaction.new_id()
    return scope.transaction.alter_table(table, lambda t: evolve.set_partition(t, pairs, new_id))


def _transform(key: PartitionKey) -> Transform:
    return Bucket(key.buckets or 1) if key.transform == "bucket" else parse_transform(key.transform)


def _set_sort(scope: Scope, table: Table, keys: Sequence[SortKeyText]) -> Table:
    sort_keys = tuple(_sort_key(key, table) for key in keys)
    for key in sort_keys:
        sort_expression(key, table)  # an order that Spark can not follow is refused here
    new_id = scope.transaction.new_id()
    return scope.transaction.alter_table(table, lambda t: evolve.set_sort(t, sort_keys, new_id))


def _sort_key(key: SortKeyText, table: Table) -> SortKey:
    """A sort key in DuckDB's words, which every reader takes it for.

    Where nothing is said, NULLs come last, as they do in the reference.
    """
    import sqlglot

    try:
        tree = sqlglot.parse_one(key.expression, read="spark")
    except sqlglot.errors.SqlglotError as error:
        raise SchemaChangeError(f"table {table.name} can not be sorted by {key.expression!r}") from error
    for column in tree.find_all(sqlglot.exp.Column):
        if column.table or find_path(table.columns, (column.name,)) is None:
            there = ", ".join(c.name for c in table.columns)
            raise SchemaChangeError(
                f"table {table.name} can not be sorted by {key.expression}: it has no column {column.sql()};"
                f" it has {there}"
            )
    return SortKey(tree.sql(dialect="duckdb"), key.descending, bool(key.nulls_first))


def _set_properties(scope: Scope, table: Table, properties: Mapping[str, str]) -> Table:
    """Properties that are options of a table are set as such; the others are kept as tags."""
    tags = dict(table.tags)
    for name, value in properties.items():
        if name.lower() in OPTIONS:
            scope.transaction.set_option(name, value, table=table)
        else:
            tags[name] = value
    if tags != dict(table.tags):
        scope.transaction.set_tags(table, tuple(sorted(tags.items())))
    found: Table = scope.transaction.state.tables[table.id]
    return found


def _comment_on(scope: Scope, statement: st.CommentOn) -> int:
    if statement.kind == "schema":
        scope.transaction.set_schema_comment(statement.name[-1], statement.comment)
        return 0
    if statement.kind == "column":
        table, path = _column_place(scope, statement.name)
        scope.transaction.alter_table(table, lambda t: evolve.set_column_comment(t, path, statement.comment))
        return 0
    relation = scope.relation(statement.name)
    scope.transaction.set_tags(relation, evolve.with_comment(relation.tags, statement.comment))
    return 0


def _column_place(scope: Scope, name: Sequence[str]) -> tuple[Table, tuple[str, ...]]:
    """The table and the column of a dotted name: the longest beginning that is a table is the table."""
    for length in (3, 2, 1):
        if length >= len(name):
            continue
        place = scope.context.find(name[:length])
        if place is None or place[0] is not scope.lake or scope.state.find_schema(place[1]) is None:
            continue
        relation = scope.state.find(place[1], place[2])
        if isinstance(relation, Table) and find_path(relation.columns, tuple(name[length:])):
            return relation, tuple(name[length:])
    raise NotFoundError(f"there is no column {'.'.join(name)}")


# -- CALL


def _call(scope: Scope, statement: st.Call) -> int:
    name = statement.name[-1].lower().removeprefix("ducklake_")
    handler = PROCEDURES.get(name)
    if handler is None:
        known = ", ".join(f"ducklake_{p}" for p in PROCEDURES)
        raise NotFoundError(f"there is no procedure {'.'.join(statement.name)}; there are {known}")
    arguments: dict[str, Any] = {}
    for index, argument in enumerate(statement.arguments):
        if argument.literal is None:
            raise LakeError(f"{statement.name[-1]} takes literals; {argument.text} is none")
        arguments[(argument.name or str(index)).lower()] = argument.literal.value
    handler(scope, arguments)
    return 0


def _call_set_option(scope: Scope, arguments: dict[str, Any]) -> None:
    name = arguments.pop("0", None) or arguments.pop("option", None)
    value = arguments.pop("1", None) if "1" in arguments else arguments.pop("value", None)
    if name is None:
        raise LakeError(
            "ducklake_set_option takes an option and its value: ducklake_set_option('parquet_compression', 'zstd')"
        )
    schema_name, table_name = arguments.pop("schema", None), arguments.pop("table_name", None)
    _nothing_left("ducklake_set_option", arguments)
    if table_name:
        table = scope.table((schema_name, table_name) if schema_name else (table_name,))
        scope.transaction.set_option(name, value, table=table)
    elif schema_name:
        scope.transaction.set_option(name, value, schema=scope.state.schema(schema_name))
    else:
        scope.transaction.set_option(name, value)


def _call_set_commit_message(scope: Scope, arguments: dict[str, Any]) -> None:
    author = arguments.pop("0", None) or arguments.pop("author", None)
    message = arguments.pop("1", None) or arguments.pop("commit_message", None)
    extra = arguments.pop("extra_info", None)
    _nothing_left("ducklake_set_commit_message", arguments)
    scope.commit_info(CommitInfo(author or scope.transaction.commit_info.author, message, extra))


def _nothing_left(procedure: str, arguments: Mapping[str, Any]) -> None:
    if arguments:
        raise LakeError(f"{procedure} does not take the argument {next(iter(arguments))}")


PROCEDURES: Mapping[str, Callable[[Scope, dict[str, Any]], None]] = {
    "set_option": _call_set_option,
    "set_commit_message": _call_set_commit_message,
}

COMMANDS: Mapping[type, Callable[[Scope, Any], int]] = {
    st.CreateSchema: _create_schema,
    st.DropSchema: _drop_schema,
    st.CreateTable: _create_table,
    st.CreateTableLike: _create_table_like,
    st.CreateView: _create_view,
    st.Drop: _drop,
    st.Truncate: _truncate,
    st.Insert: _insert,
    st.Delete: _delete,
    st.Update: _rows_not_yet,
    st.Merge: _rows_not_yet,
    st.Alter: _alter,
    st.CommentOn: _comment_on,
    st.Call: _call,
}
"""Each statement that changes a lake, and what it does; the number is of the rows it wrote."""
