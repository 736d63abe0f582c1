"""Changes of 1 % of a table's rows, compared with Delta Lake, Iceberg and a rebuild of the table.

All sides run the same statements on the same rows, merge-on-read. Each round changes other rows, on top of the
changes of the rounds before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import table_formats
from .harness import Bench, Figure, compute_all_rows

DAYS = 20

_MERGE = """
    merge into {table} t using ({source}) s on t.id = s.id and t.day = s.day
    when matched then update set amount = s.amount, item = s.item
    when not matched then insert (id, customer, amount, share, item, ordered_at, day)
    values (s.id, s.customer, s.amount, s.share, s.item, s.ordered_at, s.day)
"""

# The MERGE of a dbt snapshot, from its staging rows: versions that end, and new versions.
_SNAPSHOT = """
    merge into {table} t using ({source}) s on t.scd_id = s.scd_id
    when matched and t.valid_to is null and s.change_type = 'update' then update set valid_to = s.valid_to
    when not matched and s.change_type = 'insert' then
    insert (id, amount, item, updated_at, scd_id, valid_from, valid_to)
    values (s.id, s.amount, s.item, s.updated_at, s.scd_id, s.valid_from, s.valid_to)
"""


@dataclass(frozen=True)
class Side:
    """One table format: how it runs a statement, names a table and creates one."""

    name: str
    execute: Callable[[str], object]
    table_name: str
    create_clause: str

    def run(self, table: str, sql: str) -> None:
        self.execute(sql.replace("{table}", self.table_name.format(table)))

    def create_table(self, table: str, query: str, partition: str = "") -> None:
        self.run(table, self.create_clause.format(table="{table}", partition=partition) + f" as {query}")


def run(bench: Bench) -> list[Figure]:
    sides = make_sides(bench)
    return [*_partitioned_table(bench, sides), *_reads_with_deletes(bench), *_dbt_snapshot(bench, sides)]


def make_sides(bench: Bench) -> list[Side]:
    sides = [
        Side("ours", bench.lake.execute, "{}", "create or replace table {table} {partition}"),
    ]
    if table_formats.AVAILABLE:
        delta = "tblproperties ('delta.enableDeletionVectors' = 'true')"
        modes = ", ".join(f"'write.{kind}.mode' = 'merge-on-read'" for kind in ("delete", "update", "merge"))
        iceberg = f"tblproperties ('format-version' = '3', {modes})"
        sides += [
            Side(
                "Delta",
                bench.spark.sql,
                "spark_catalog.default.{}",
                f"create or replace table {{table}} using delta {{partition}} {delta}",
            ),
            Side(
                "Iceberg",
                bench.spark.sql,
                "iceberg.bench.{}",
                f"create or replace table {{table}} using iceberg {{partition}} {iceberg}",
            ),
        ]
    return sides


def _day_column(bench: Bench) -> str:
    return f"date_add(date'2026-01-01', cast(id div {bench.rows // DAYS} as int)) as day"


def _partitioned_table(bench: Bench, sides: list[Side]) -> list[Figure]:
    """Changes of a table that is partitioned by day."""
    per_day = bench.rows // DAYS
    all_rows = f"select *, {_day_column(bench)} from ({bench.sample_sql()})"
    for side in sides:
        side.create_table("facts", all_rows, "partitioned by (day)")

    def rebuild(round_number: int) -> None:
        writer = bench.spark.sql(all_rows).repartition("day").write.partitionBy("day")
        writer.mode("overwrite").parquet(f"{bench.folder}/rebuilt")

    def merge_source(where: str) -> str:
        """Rows of the table with new values, and a tenth as many new rows."""
        rows = f"select *, {_day_column(bench)} from ({bench.sample_sql()}) where {where}"
        columns = "customer, amount, share, item, ordered_at, day"
        changed_rows = f"{rows} union all select id + {bench.rows}, {columns} from ({rows}) where id % 10 = 3"
        return f"select id, customer, amount + 1 as amount, share, 'new' as item, ordered_at, day from ({changed_rows})"

    def merge_spread(round_number: int) -> str:
        return _MERGE.replace("{source}", merge_source(f"id % 100 = {round_number + 10}"))

    def merge_one_day(round_number: int) -> str:
        begin = (round_number + 5) * per_day
        return _MERGE.replace("{source}", merge_source(f"id >= {begin} and id < {begin + bench.rows // 100}"))

    def delete(round_number: int) -> str:
        return f"delete from {{table}} where id % 100 = {round_number + 40}"

    def overwrite(round_number: int) -> str:
        first = (round_number + 12) * per_day
        rows = (
            f"select *, {_day_column(bench)} from ({bench.sample_sql()}) where id >= {first} and id < {first + per_day}"
        )
        return f"insert overwrite {{table}} select id, customer, amount, share, item, ordered_at, day from ({rows})"

    bench.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    figures = []
    for task, statement in (
        ("merge of 1 %, spread over all files", merge_spread),
        ("merge of 1 %, in one day's partition", merge_one_day),
        ("delete of 1 %", delete),
        ("insert overwrite of one partition", overwrite),
    ):
        figures += _compare(bench, task, sides, "facts", statement, rebuild)
    bench.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    return figures


def _compare(
    bench: Bench,
    task: str,
    sides: list[Side],
    table: str,
    statement: Callable[[int], str],
    rebuild: Callable[[int], object],
) -> list[Figure]:
    def run_on(side: Side) -> Callable[[int], None]:
        return lambda round_number: side.run(table, statement(round_number))

    ours, *others = bench.median_seconds(*(run_on(side) for side in sides), rebuild)
    print(f"{task}: {ours:.1f} s, others {', '.join(f'{seconds:.1f} s' for seconds in others)}", flush=True)
    names = [*(side.name for side in sides[1:]), "Spark's rebuild as Parquet"]
    return [
        Figure(task, ours, baseline=seconds, compared_with=name, goal="below 1")
        for name, seconds in zip(names, others, strict=True)
    ]


def _reads_with_deletes(bench: Bench) -> list[Figure]:
    """Reads of a table with 1 % deleted rows in every file, compared with the same table without deletes."""
    lake = bench.lake
    for name in ("without_deletes", "with_deletes"):
        lake.execute(f"create or replace table {name} as {bench.sample_sql()}")
    lake.execute("delete from with_deletes where id % 100 = 7")

    def scan(name: str) -> Callable[[int], None]:
        return lambda round_number: compute_all_rows(lake.sql(f"select * from {name}"))

    def aggregate(name: str) -> Callable[[int], object]:
        return lambda round_number: lake.sql(f"select sum(amount), count(distinct customer) from {name}").collect()

    figures = []
    for task, reads in (("scan with 1 % deleted", scan), ("aggregate with 1 % deleted", aggregate)):
        ours, baseline = bench.median_seconds(reads("with_deletes"), reads("without_deletes"))
        figures.append(Figure(task, ours, baseline=baseline, compared_with="none deleted", goal="1.5"))
    return figures


def _dbt_snapshot(bench: Bench, sides: list[Side]) -> list[Figure]:
    """A dbt snapshot with the check strategy: 1 % of the source's rows changed, and their new versions are merged."""
    first_run = "timestamp'2026-01-01'"

    def source(round_number: int) -> str:
        """The source in a round. Each round changes another 1 %."""
        changes = f"case when id % 100 < {round_number} + 2 then id % 100 else -1 end"
        return f"select id, amount, concat(item, {changes}) as item from ({bench.sample_sql()})"

    def versions(round_number: int, at: str) -> str:
        return (
            f"select id, amount, item, {at} as updated_at, md5(concat_ws('|', id, {at})) as scd_id,"
            f" {at} as valid_from, cast(null as timestamp) as valid_to from ({source(round_number)})"
        )

    for side in sides:
        side.create_table("history", versions(-2, first_run))

    def timestamp_of(round_number: int) -> str:
        return f"timestamp'2026-02-{round_number + 2:02d}'"

    def statement(round_number: int) -> str:
        """The SQL that the snapshot macro renders."""
        at = timestamp_of(round_number)
        changes = f"""
            with compared as (
                select s.*, t.scd_id as old_scd_id, case when t.id is null then array('insert')
                    when s.amount is distinct from t.amount or s.item is distinct from t.item
                    then array('insert', 'update') end as changes
                from ({source(round_number)}) s
                left join (select * from {{table}} where valid_to is null) t on s.id = t.id
            )
            select change_type, id, amount, item, {at} as updated_at,
                if(change_type = 'insert', md5(concat_ws('|', id, {at})), old_scd_id) as scd_id,
                {at} as valid_from, if(change_type = 'update', {at}, null) as valid_to
            from compared lateral view explode(changes) each as change_type
        """
        return _SNAPSHOT.replace("{source}", changes)

    def rebuild(round_number: int) -> None:
        """Rewrites old and new versions from the old table and the source, which alone does not have the history."""
        at = timestamp_of(round_number)
        before, after = (f"{bench.folder}/rebuilt{turn % 2}" for turn in (round_number, round_number + 1))
        if round_number < 0:
            bench.spark.sql(versions(-2, first_run)).write.mode("overwrite").parquet(before)
        rows = f"""
            with compared as (
                select s.id as new_id, s.amount as new_amount, s.item as new_item, t.*,
                    case when t.id is null then array('new')
                    when s.amount is distinct from t.amount or s.item is distinct from t.item
                    then if(s.id is null, array('kept'), array('new', 'ended')) else array('kept') end as changes
                from ({source(round_number)}) s full join parquet.`{before}` t on s.id = t.id and t.valid_to is null
            )
            select if(change = 'new', new_id, id) as id, if(change = 'new', new_amount, amount) as amount,
                if(change = 'new', new_item, item) as item, if(change = 'new', {at}, updated_at) as updated_at,
                if(change = 'new', md5(concat_ws('|', new_id, {at})), scd_id) as scd_id,
                if(change = 'new', {at}, valid_from) as valid_from,
                case change when 'ended' then {at} when 'kept' then valid_to end as valid_to
            from compared lateral view explode(changes) each as change
        """
        bench.spark.sql(rows).write.mode("overwrite").parquet(after)

    return _compare(bench, "dbt snapshot, 1 % changed", sides, "history", statement, rebuild)
