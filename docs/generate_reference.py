"""Writes docs/reference/ from the code: `python docs/generate_reference.py`, or `make reference`.

Names, values and defaults come from the code. The sentences are here. A setting, option, macro or statement that has no
sentence here is an error, and so is a sentence about something that does not exist.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_type_hints

from dbt.adapters.ducklake import LakeSession, configs, credentials, incremental, other_adapters
from dbt.adapters.ducklake.lake.options import OPTIONS, Option
from dbt.adapters.ducklake.lake.retry import Retry
from dbt.adapters.ducklake.spark.commands.maintenance import MAINTENANCE_STATEMENTS
from dbt.adapters.ducklake.spark.commands.procedures import LAKE_PROCEDURES, PROCEDURES
from dbt.adapters.ducklake.spark.commands.registry import CATALOG_COMMANDS, COMMANDS
from dbt.adapters.ducklake.spark.read.table_functions import PREFIX, TABLE_FUNCTIONS
from dbt.adapters.ducklake.spark.sql import statements as st

DOCS = Path(__file__).parent
MACROS = DOCS.parent / "macros"
NOTE = "<!-- Written by docs/generate_reference.py: change that file, then run `make reference`. -->"

PROFILE = {
    "catalog": "The [catalog database](../connecting.md#catalog-databases). Required.",
    "data_path": "Where the data files are. Required to create a lake, which then stores it.",
    "database": "The lake's name in SQL.",
    "schema": "In dbt, the schema to build into. In `LakeSession`, where names without a schema are looked up.",
    "author": "The author of snapshots. Default: the operating system's user.",
    "metadata_schema": "The schema of the catalog's tables, in PostgreSQL and DuckDB.",
    "read_only": "Refuse every change.",
    "create_if_not_exists": "Create a missing lake.",
    "data_inlining_row_limit": "Used where the lake does not set the [option](options.md) of this name.",
    "publish": "`node`: each node is a snapshot. `run`: [a command is one](../publishing.md), after its tests passed.",
    "publish_on_failure": "What `publish: run` publishes [after a failure](../publishing.md#when-something-fails):"
    " `nothing`, or `passed`.",
    "maintenance": "What a run does for the tables that it writes: `auto`, `off`, or [limits](../dbt-maintenance.md).",
    "encrypted": "Whether the files of a new lake are [encrypted](../storage.md#encryption).",
    "format_version": "The [format version](../connecting.md#format-versions) of a new lake: `'1.0'` or `'1.1'`.",
    "retry": "[Retries](../transactions.md#retries) of commits and of statements with a conflict.",
    "spark": "[Where Spark runs](../connecting.md#spark), and its settings.",
    "storage": "[Object storage](../connecting.md#object-storage). Default: the environment.",
    "attach": "Further lakes, read as `name.schema.table`: see [Attached lakes](../connecting.md#attached-lakes).",
    "retry.max_count": "How often to try again.",
    "retry.wait_ms": "The longest first pause.",
    "retry.backoff": "How many times as long each further pause is.",
    "spark.master": "Where to start Spark. Default: `local[*]`.",
    "spark.remote": "A server of Spark Connect, instead of `master`.",
    "spark.config": "Settings of Spark.",
    "spark.keep_alive": "Keep a local Spark running for the next commands, until it is idle for this long.",
    "storage.endpoint": "The URL of an S3-compatible store.",
    "storage.region": "The region of the bucket.",
    "storage.key": "The access key.",
    "storage.secret": "The secret key.",
    "storage.session_token": "The token of temporary credentials.",
    "attach.name": "The lake's name in SQL. Required.",
    "attach.catalog": "Its catalog database. Required.",
    "attach.data_path": "As above.",
    "attach.metadata_schema": "As above.",
    "attach.read_only": "As above.",
    "attach.create_if_not_exists": "As above.",
    "attach.format_version": "As above.",
    "attach.encrypted": "As above.",
    "attach.snapshot_version": "Read the lake as of this snapshot. It is then read-only.",
    "attach.snapshot_time": "Read the lake as of this time. It is then read-only.",
}

MODEL = {
    "partition_by": "[Partition keys](../storage.md#partitioning): columns and transforms.",
    "partitioned_by": "The same as `partition_by`.",
    "sorted_by": "[Sort keys](../storage.md#sorting): `column [asc|desc] [nulls first|last]`.",
    "sort_by": "The same as `sorted_by`.",
    "table_options": "[Options](options.md) of the table.",
    "partitions": "The [partitions](../dbt-incremental.md#insert_overwrite-with-partitions) that `insert_overwrite`"
    " replaces.",
    "merge_update_condition": "`merge` updates only rows that fulfil it.",
    "merge_insert_condition": "`merge` inserts only new rows that fulfil it.",
    "merge_with_delete_condition": "`merge` deletes existing rows that fulfil it, before any update.",
    "commit_message": "The message of the model's snapshot. Default: such as `dbt run: orders (table)`.",
    "commit_author": "The author of the model's snapshot. Default: the profile's `author`.",
    "reuse": "`true`: the node is [not computed](../reuse.md) while it would be the same. `deterministic`: also where"
    " only you know that.",
    "maintenance": "What a run does for the table after its node: `auto`, `off`, or [limits](../dbt-maintenance.md).",
    "commit_extra_info": "Names and values that are added to the [snapshot's JSON](../dbt.md#snapshot-metadata).",
}

STRATEGIES = {
    "append": "Adds the new rows.",
    "merge": "Updates rows with the key of a new row, and inserts the others.",
    "delete+insert": "Replaces rows with the key of a new row.",
    "insert_overwrite": "Replaces the partitions of the new rows, or the whole table.",
    "microbatch": "Replaces the rows in the window of each batch.",
}

OPTION_TEXTS = {
    "auto_compact": "Whether [maintenance](../compaction.md) of a schema or the lake takes the table.",
    "data_inlining_row_limit": "Up to so many rows of a statement stay in the catalog. 0 writes all rows to files.",
    "delete_older_than": "How long files stay that [nobody needs](../maintenance.md#retention). Default: 2 days.",
    "expire_older_than": "How old snapshots must be to [expire](../maintenance.md#retention) by default.",
    "hive_file_pattern": "Put files into folders that name the partition.",
    "parquet_compression": "The codec. Spark does not bring the one for brotli.",
    "parquet_compression_level": "For zstd, gzip and brotli.",
    "parquet_row_group_size": "Rows of a row group.",
    "parquet_row_group_size_bytes": "Bytes of a row group. Spark's default is 128 MB.",
    "parquet_version": "Version of the Parquet format.",
    "per_thread_output": "Stored for DuckDB.",
    "require_commit_message": "Refuse snapshots without a message.",
    "rewrite_delete_threshold": "Where it is set, a statement that leaves at least this share of a file's rows deleted"
    " [rewrites](../storage.md#rewriting-files-with-many-deletes) the file. The default is for"
    " `ducklake_rewrite_data_files` alone.",
    "sort_on_insert": "Sort new files by the table's sort keys.",
    "target_file_size": "Bytes of a file, approximately.",
    "write_deletion_vectors": "Write delete files as [deletion vectors](../storage.md#deletion-vectors).",
}

LAKE_PROCEDURE_TEXTS = {
    "merge_adjacent_files": "[Merges small files](../compaction.md#merge-small-files).",
    "rewrite_data_files": "Writes files [without deleted rows](../compaction.md#remove-deleted-rows-from-files).",
    "flush_inlined_data": "[Writes inlined rows](../compaction.md#flush-inlined-rows) and deletes into files.",
    "migrate_partitioning": "Writes files of [earlier partition keys and sort orders]"
    "(../compaction.md#apply-partitions-and-sort-orders-to-old-files) anew.",
    "maintain": "Flushes, rewrites and merges [where it pays](../dbt-maintenance.md#what-tables-need).",
    "checkpoint": "Does [all maintenance](../dbt-maintenance.md#at-the-end-of-a-run) of the lake.",
    "health": "Tells [what tables need](../dbt-maintenance.md#what-tables-need).",
    "add_data_files": "[Adds existing Parquet files](../add-files.md) to a table, without copying them.",
    "analyze": "Completes the [statistics](../delta-and-iceberg-words.md#analyze-table) of a table's files.",
    "expire_snapshots": "[Expires](../maintenance.md#expire-snapshots) snapshots.",
    "cleanup_old_files": "Deletes [files that no snapshot needs]"
    "(../maintenance.md#delete-files-that-no-snapshot-needs).",
    "delete_orphaned_files": "Deletes [orphan files](../maintenance.md#delete-orphan-files).",
    "migrate": "Brings the lake to a later [format version](../connecting.md#format-versions).",
}
PROCEDURE_TEXTS = {
    **LAKE_PROCEDURE_TEXTS,
    "set_option": "Sets an [option](options.md) of the lake, or of `schema` or `table_name`.",
    "set_commit_message": "Sets author, message and `extra_info` of the running transaction.",
    "rollback": "[Restores](../rollback.md) an earlier version of tables, a schema or the lake.",
}

OPERATIONS = {
    **{PREFIX + name: text for name, text in LAKE_PROCEDURE_TEXTS.items()},
    "ducklake_rollback": PROCEDURE_TEXTS["rollback"],
    "ducklake_diff": "Prints the [difference](../table-diff.md#print-a-diff) between two versions of a table.",
    "ducklake_lineage": "Prints the versions of a relation and [what they were built from](../lineage.md).",
    "ducklake_stale": "Prints the [stale](../lineage.md#stale-models) relations.",
    "ducklake_plan": "Prints which nodes with [`reuse`](../reuse.md) would be computed, and why.",
    "ducklake_preview": "Prints what the last [run that is one snapshot](../publishing.md#see-what-a-run-would-change)"
    " changed, or would have changed.",
    "ducklake_stop_spark": "Stops the Spark that `spark.keep_alive` keeps running.",
}
FIELDS_OF_DBT = {"maintenance", "publish", "publish_on_failure"}
"""Fields of a profile about nodes, which a LakeSession knows nothing of."""

HELPERS = {"ducklake_call", "ducklake_resolve_relation"}
"""Macros that others call, and users do not."""

STATEMENTS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "queries": {"Query": ["select * from orders version as of 41", "from orders select *", "table orders"]},
    "create-schema-create-table-create-view-drop": {
        "CreateSchema": ["create schema s"],
        "DropSchema": ["drop schema s"],
        "CreateTable": ["create table t (id bigint)", "create or replace table t as select 1 as id"],
        "CreateTableLike": ["create table t like orders"],
        "Drop": ["drop table t", "drop view v"],
        "Truncate": ["truncate table t"],
    },
    "views": {"CreateView": ["create or replace view v as select 1 as id"]},
    "create-function": {
        "CreateFunction": ["create function f(x int) returns int return x + 1"],
        "DropFunction": ["drop function f"],
    },
    "insert": {"Insert": ["insert into t select 1", "insert into t by name select 1 as id"]},
    "delete": {"Delete": ["delete from t where id = 1"]},
    "update": {"Update": ["update t set id = 2 where id = 1"]},
    "merge": {"Merge": ["merge into t using s on t.id = s.id when matched then delete"]},
    "overwrite-insert-overwrite-replace-where": {
        "Insert": ["insert overwrite t select 1", "insert into t replace where id = 1 select 1"],
    },
    "with-schema-evolution-schema-merge": {
        "Insert": ["insert with schema evolution into t by name select 1 as id"],
        "Merge": ["merge with schema evolution into t using s on t.id = s.id when not matched then insert *"],
    },
    "alter-table-schema-evolution": {"Alter": ["alter table t add column c int", "alter view v rename to w"]},
    "comment-on": {"CommentOn": ["comment on table t is 'text'", "comment on column t.c is null"]},
    "show-and-describe": {
        "ShowSchemas": ["show schemas"],
        "ShowTables": ["show tables in s"],
        "ShowViews": ["show views"],
        "ShowTableExtended": ["show table extended like 'o*'"],
        "ShowColumns": ["show columns in t"],
        "ShowCreateTable": ["show create table t"],
        "ShowProperties": ["show tblproperties t"],
        "ShowPartitions": ["show partitions t"],
        "DescribeTable": ["describe table t", "describe t column"],
        "DescribeSchema": ["describe schema s"],
        "ShowUserFunctions": ["show user functions in s"],
        "DescribeFunction": ["describe function main.f"],
        "Use": ["use s"],
    },
    "begin-commit-rollback": {"Begin": ["begin"], "Commit": ["commit"], "Rollback": ["rollback"]},
    "optimize-vacuum-restore-analyze": {
        "Optimize": ["optimize t"],
        "Vacuum": ["vacuum t retain 168 hours", "vacuum dry run"],
        "Analyze": ["analyze table t compute statistics"],
        "DescribeHistory": ["describe history t"],
        "DescribeDetail": ["describe detail t"],
        "Restore": ["restore table t to version as of 41"],
    },
    "call": {"Call": ["call ducklake_rollback('main.orders', version => 41)"]},
    "names": {
        "CreateTempView": ["create temporary view v as select 1 as id"],
        "Passthrough": ["set spark.sql.shuffle.partitions = 8", "cache table v"],
    },
}
"""For each heading of sql.md, examples of the statements that it describes, by the class that holds the statement."""


def described(names: Iterable[str], texts: Mapping[str, Any], what: str) -> None:
    """Raises if a name has no text, or a text no name."""
    names = set(names)
    if missing := sorted(names - texts.keys()):
        raise SystemExit(f"docs/generate_reference.py describes no {what} {', '.join(missing)}")
    if extra := sorted(texts.keys() - names):
        raise SystemExit(f"docs/generate_reference.py describes the {what} {', '.join(extra)}, which does not exist")


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in lines)


def code(value: object) -> str:
    if value is None:
        return ""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text}`"


def page(title: str, *parts: str) -> str:
    return "\n\n".join((f"# {title}", NOTE, *parts)) + "\n"


# -- profile


def profile_page() -> str:
    groups = {
        "": credentials._FIELDS,
        "retry.": credentials._RETRY,
        "spark.": credentials._SPARK,
        "storage.": credentials._STORAGE,
        "attach.": credentials._ATTACH,
    }
    fields = {f"{group}{name}": rule for group, rules in groups.items() for name, rule in rules.items()}
    # The text of a field that another branch of the code may not have yet is no error.
    described(fields, {name: text for name, text in PROFILE.items() if name in fields}, "field")
    of_sessions = {name: rule for name, rule in credentials._FIELDS.items() if name not in FIELDS_OF_DBT}
    described(of_sessions, dict.fromkeys(profile_parameters(), ""), "parameter of LakeSession")
    defaults = {f.name: f.default for f in dataclasses.fields(credentials.DucklakeCredentials)}
    defaults |= {f"retry.{f.name}": f.default for f in dataclasses.fields(Retry)}
    defaults["catalog"] = None

    def rows(group: str) -> list[tuple[str, ...]]:
        return [
            (code(name), rule.expected, code(defaults.get(f"{group}{name}")), PROFILE[f"{group}{name}"])
            for name, rule in groups[group].items()
        ]

    header = ("field", "takes", "default", "")
    return page(
        "Profile fields",
        "The fields of a target in `profiles.yml`, next to dbt's `type: ducklake` and `threads`. `LakeSession` takes"
        " each of them as a parameter of the same name. See [Connect to a lake](../connecting.md) and the example in"
        " [dbt](../dbt.md#profile).",
        table(header, rows("")),
        *(f"## {group.rstrip('.')}\n\n{table(header, rows(group))}" for group in list(groups)[1:]),
    )


def profile_parameters() -> list[str]:
    """The parameters of LakeSession that are fields of a profile too."""
    return [name for name in inspect.signature(LakeSession).parameters if name in credentials._FIELDS]


# -- models


def models_page() -> str:
    settings = [f for f in dataclasses.fields(configs.DucklakeConfig) if f.name != "_extra"]
    described((f.name for f in settings), MODEL, "model setting")
    described(incremental.STRATEGIES, STRATEGIES, "strategy")
    kinds = {
        "list[str] | str | None": "a text or a list",
        "str | None": "a text",
        "dict[str, typing.Any] | None": "names and values",
        "bool | str | dict[str, typing.Any] | None": "a word, or names and values",
        "list[typing.Any] | None": "a list",
        "bool | str | None": "true, false or a word",
    }
    types = get_type_hints(configs.DucklakeConfig)
    rows = [(code(f.name), kinds[str(types[f.name])], MODEL[f.name]) for f in settings]
    strategies = [(code(name), STRATEGIES[name]) for name in incremental.STRATEGIES]
    unsupported = [(code(name), instead) for name, instead in other_adapters.INSTEAD.items()]
    return page(
        "Model settings",
        "The settings that dbt-ducklake adds to those of dbt. See [dbt models](../dbt-models.md) and [Incremental"
        " models](../dbt-incremental.md).",
        table(("setting", "takes", ""), rows),
        "## incremental_strategy\n\n" + table(("strategy", ""), strategies),
        "The default is `merge` with a `unique_key`, otherwise `append`.",
        "## Settings of other adapters\n\nThese are errors in your own models.",
        table(("setting", "instead"), unsupported),
    )


# -- options


def accepted(option: Option) -> str:
    """What an option takes, as its error says it."""
    try:
        option.parse("?")
    except ValueError as error:
        return str(error)
    raise SystemExit("an option accepts '?'")


def options_page() -> str:
    described(OPTIONS, OPTION_TEXTS, "option")
    rows = [
        (
            code(name),
            accepted(option),
            code(option.default),
            "any" if "table" in option.scopes else "lake",
            OPTION_TEXTS[name],
        )
        for name, option in OPTIONS.items()
    ]
    return page(
        "Options",
        "Set them with [CALL ducklake_set_option](../storage.md#options), `tblproperties` or the model setting"
        " `table_options`. The scope `any` is the lake, a schema or a table. The nearest setting wins: table, schema,"
        " lake, default.",
        table(("option", "takes", "default", "scope", ""), rows),
    )


# -- macros and operations

_MACRO = re.compile(r"(?P<comment>\{#-[^#]*-?#\}\n)?\{% macro (?P<name>ducklake_\w+)\((?P<arguments>[^)]*)\)")


def macros(folder: str) -> dict[str, tuple[str, str]]:
    """The arguments of each macro of a folder, and the comment that stands directly before it."""
    found = {}
    for file in sorted((MACROS / folder).glob("*.sql")):
        for macro in _MACRO.finditer(file.read_text()):
            comment = re.sub(r"\s+", " ", (macro["comment"] or "").strip(" \n{}#-"))
            found[macro["name"]] = (re.sub(r"\s+", " ", macro["arguments"]), comment)
    return found


def function_text(name: str) -> tuple[str, str]:
    """The call of a table function and its description, from its docstring."""
    docstring = (TABLE_FUNCTIONS[name.removeprefix(PREFIX)].__doc__ or "").split("\n\n")[0].strip()
    call, _, text = re.sub(r"\s+", " ", docstring).partition("`: ")
    return call.strip("`"), capitalized(text)


def capitalized(text: str) -> str:
    return text[:1].upper() + text[1:]


def macros_page() -> str:
    in_models = macros("lake")
    rows = []
    for name, (arguments, comment) in in_models.items():
        text = comment.split(" For use in FROM")[0] if comment else function_text(name)[1]
        rows.append((code(f"{name}({arguments})"), capitalized(text)))
    operations = {n: m for n, m in macros("operations").items() if n not in HELPERS}
    if "ducklake_diff" in in_models:
        operations["ducklake_diff"] = in_models["ducklake_diff"]
    described(operations, {n: t for n, t in OPERATIONS.items() if n in operations}, "operation")
    operation_rows = [(code(f"{n}({arguments})"), OPERATIONS[n]) for n, (arguments, _) in sorted(operations.items())]
    return page(
        "Macros and operations",
        "## Macros for FROM\n\nEach renders something that stands in FROM: `select * from {{ ducklake_at(ref('orders'),"
        " version=41) }}`. A `database` names an [attached lake](../connecting.md#attached-lakes).",
        table(("macro", ""), rows),
        "## Operations\n\n`dbt run-operation NAME --args '{argument: value}'`.",
        table(("operation", ""), operation_rows),
    )


# -- SQL


def sql_page() -> str:
    kinds = [
        *COMMANDS,
        *CATALOG_COMMANDS,
        *MAINTENANCE_STATEMENTS,
        st.Query,
        st.Passthrough,
        st.CreateTempView,
        st.Use,
        st.Begin,
        st.Commit,
        st.Rollback,
    ]
    described((k.__name__ for k in kinds), {name: "" for group in STATEMENTS.values() for name in group}, "statement")
    rows = []
    for anchor, group in STATEMENTS.items():
        for name, example in ((name, example) for name, examples in group.items() for example in examples):
            parsed = type(st.parse(example)).__name__
            if parsed != name:
                raise SystemExit(f"the example {example!r} of {name} is a {parsed}")
        examples = ", ".join(code(example) for examples in group.values() for example in examples)
        rows.append((f"[{heading(anchor)}](../sql.md#{anchor})", examples))
    functions = [(code(call), text) for call, text in map(function_text, TABLE_FUNCTIONS)]
    all_procedures = {**PROCEDURES, **LAKE_PROCEDURES}
    described(all_procedures, PROCEDURE_TEXTS, "procedure")
    procedures = [(code(f"call {PREFIX}{name}(...)"), PROCEDURE_TEXTS[name]) for name in all_procedures]
    return page(
        "Statements and functions",
        "## Statements",
        table(("described in", "such as"), rows),
        "Statements that are not listed here go to Spark.",
        "## Table functions\n\n" + table(("function", "rows"), functions),
        "## Procedures\n\n" + table(("procedure", ""), procedures),
    )


def heading(anchor: str) -> str:
    """The heading of sql.md with an anchor."""
    for title in re.findall(r"^#+ (.+)$", (DOCS / "sql.md").read_text(), re.MULTILINE):
        if re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") == anchor:
            return str(title)
    raise SystemExit(f"docs/sql.md has no heading for #{anchor}")


PAGES: Mapping[str, Callable[[], str]] = {
    "profile.md": profile_page,
    "models.md": models_page,
    "options.md": options_page,
    "macros.md": macros_page,
    "sql.md": sql_page,
}


def main() -> int:
    for name, make in PAGES.items():
        (DOCS / "reference" / name).write_text(make())
    return 0


if __name__ == "__main__":
    sys.exit(main())
