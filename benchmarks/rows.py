"""Changing 1 % of a table's rows, against a rebuild of the table, and against Delta Lake and Iceberg.

All sides run the same statement on the same rows, merge-on-read. A round changes other rows than the
one before, so that each meets what the rounds before left, as on a table that lives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from . import rivals
from .harness import Bench, Figure, consume

DAYS = 20

_MERGE = """
    merge into {table} t using ({source}) s on t.id = s.id and t.day = s.day
    when matched then update set amount = s.amount, item = s.item
    when not matched then insert (id, customer, amount, share, item, ordered_at, day)
    values (s.id, s.customer, s.amount, s.share, s.item, s.ordered_at, s.day)
"""

# As dbt writes it, over what it staged: versions that end, and new ones.
_SNAPSHOT = """
    merge into {table} t using ({source}) s on t.scd_id = s.scd_id
    when matched and t.valid_to is null and s.change_type = 'update' then update set valid_to = s.valid_to
    when not matched and s.change_type = 'insert' then
    insert (id, amount, item, updated_at, scd_id, valid_from, valid_to)
    values (s.id, s.amount, s.item, s.updated_at, s.scd_id, s.valid_from, s.valid_to)
"""


@dataclass(frozen=True)
class Side:
    """One table format: how it runs a statement, what a table of it is called, how one is made."""

    name: str
    execute: Callable[[str], object]
    table: str
    create: str

    def run(self, name: str, sql: str) -> None:
        self.execute(sql.replace("{table}", self.table.format(name)))

    def make(self, name: str, sql: str, partition: str = "") -> None:
        self.run(name, self.create.format(table="{table}", partition=partition) + f" as {sql}")


def run(bench: Bench) -> list[Figure]:
    sides = _sides(bench)
    return [*_facts(bench, sides), *_deleted(bench), *_snapshot(bench, sides)]


def _sides(bench: Bench) -> list[Side]:
    sides = [
        Side("ours", bench.lake.execute, "{}", "create or replace table {table} {partition}"),
    ]
    if rivals.THERE:
        delta = "tblproperties ('delta.enableDeletionVectors' = 'true')"
        ways = ", ".join(f"'write.{w}.mode' = 'merge-on-read'" for w in ("delete", "update", "merge"))
        iceberg = f"tblproperties ('format-version' = '3', {ways})"
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


def _day(bench: Bench) -> str:
    return f"date_add(date'2026-01-01', cast(id div {bench.rows // DAYS} as int)) as day"


def _facts(bench: Bench, sides: list[Side]) -> list[Figure]:
    """A table with a partition a day."""
    per_day = bench.rows // DAYS
    whole = f"select *, {_day(bench)} from ({bench.sample_sql()})"
    for side in sides:
        side.make("facts", whole, "partitioned by (day)")

    def rebuild(number: int) -> None:
        writer = bench.spark.sql(whole).repartition("day").write.partitionBy("day")
        writer.mode("overwrite").parquet(f"{bench.folder}/rebuilt")

    def changed(where: str) -> str:
        """Rows of the table with other values, and a tenth as many that are new to it."""
        rows = f"select *, {_day(bench)} from ({bench.sample_sql()}) where {where}"
        columns = "customer, amount, share, item, ordered_at, day"
        both = f"{rows} union all select id + {bench.rows}, {columns} from ({rows}) where id % 10 = 3"
        return f"select id, customer, amount + 1 as amount, share, 'new' as item, ordered_at, day from ({both})"

    def spread(number: int) -> str:
        return _MERGE.replace("{source}", changed(f"id % 100 = {number + 10}"))

    def one_day(number: int) -> str:
        begin = (number + 5) * per_day
        return _MERGE.replace("{source}", changed(f"id >= {begin} and id < {begin + bench.rows // 100}"))

    def delete(number: int) -> str:
        return f"delete from {{table}} where id % 100 = {number + 40}"

    def overwrite(number: int) -> str:
        first = (number + 12) * per_day
        rows = f"select *, {_day(bench)} from ({bench.sample_sql()}) where id >= {first} and id < {first + per_day}"
        return f"insert overwrite {{table}} select id, customer, amount, share, item, ordered_at, day from ({rows})"

    bench.spark.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
    figures = []
    for what, statement in (
        ("merge of 1 %, spread over all files", spread),
        ("merge of 1 %, in one day's partition", one_day),
        ("delete of 1 %", delete),
        ("insert overwrite of one partition", overwrite),
    ):
        figures += _compared(bench, what, sides, "facts", statement, rebuild)
    bench.spark.conf.unset("spark.sql.sources.partitionOverwriteMode")
    return figures


def _compared(
    bench: Bench,
    what: str,
    sides: list[Side],
    table: str,
    statement: Callable[[int], str],
    rebuild: Callable[[int], object],
) -> list[Figure]:
    def changes(side: Side) -> Callable[[int], None]:
        return lambda number: side.run(table, statement(number))

    ours, *others = bench.turns(*(changes(side) for side in sides), rebuild)
    print(f"{what}: {ours:.1f} s, others {', '.join(f'{seconds:.1f} s' for seconds in others)}", flush=True)
    against = [*(side.name for side in sides[1:]), "Spark's rebuild as Parquet"]
    return [
        Figure(what, ours, other=seconds, against=name, goal="below 1")
        for name, seconds in zip(against, others, strict=True)
    ]


def _deleted(bench: Bench) -> list[Figure]:
    """A scan of a table of which 1 % of the rows are deleted, in every file."""
    lake = bench.lake
    for name in ("kept", "masked"):
        lake.execute(f"create or replace table {name} as {bench.sample_sql()}")
    lake.execute("delete from masked where id % 100 = 7")

    def scan(name: str) -> Callable[[int], None]:
        return lambda number: consume(lake.sql(f"select * from {name}"))

    def aggregate(name: str) -> Callable[[int], object]:
        return lambda number: lake.sql(f"select sum(amount), count(distinct customer) from {name}").collect()

    figures = []
    for what, reads in (("scan with 1 % deleted", scan), ("aggregate with 1 % deleted", aggregate)):
        ours, other = bench.turns(reads("masked"), reads("kept"))
        figures.append(Figure(what, ours, other=other, against="none deleted", goal="1.5"))
    return figures


def _snapshot(bench: Bench, sides: list[Side]) -> list[Figure]:
    """A dbt snapshot, check strategy, of which 1 % of the rows changed: what changed, merged."""
    now = "timestamp'2026-01-01'"

    def state(number: int) -> str:
        """The source as it is at a round: each changes another 1 %."""
        changes = f"case when id % 100 < {number} + 2 then id % 100 else -1 end"
        return f"select id, amount, concat(item, {changes}) as item from ({bench.sample_sql()})"

    def versions(number: int, at: str) -> str:
        return (
            f"select id, amount, item, {at} as updated_at, md5(concat_ws('|', id, {at})) as scd_id,"
            f" {at} as valid_from, cast(null as timestamp) as valid_to from ({state(number)})"
        )

    for side in sides:
        side.make("history", versions(-2, now))

    def moment(number: int) -> str:
        return f"timestamp'2026-02-{number + 2:02d}'"

    def statement(number: int) -> str:
        """What this package's macro for dbt writes."""
        at = moment(number)
        changes = f"""
            with compared as (
                select s.*, t.scd_id as old_scd_id, case when t.id is null then array('insert')
                    when s.amount is distinct from t.amount or s.item is distinct from t.item
                    then array('insert', 'update') end as changes
                from ({state(number)}) s left join (select * from {{table}} where valid_to is null) t on s.id = t.id
            )
            select change_type, id, amount, item, {at} as updated_at,
                if(change_type = 'insert', md5(concat_ws('|', id, {at})), old_scd_id) as scd_id,
                {at} as valid_from, if(change_type = 'update', {at}, null) as valid_to
            from compared lateral view explode(changes) each as change_type
        """
        return _SNAPSHOT.replace("{source}", changes)

    def rebuild(number: int) -> None:
        """All versions anew, those that were there and the new ones: a history is not in its source."""
        at = moment(number)
        before, after = (f"{bench.folder}/rebuilt{turn % 2}" for turn in (number, number + 1))
        if number < 0:
            bench.spark.sql(versions(-2, now)).write.mode("overwrite").parquet(before)
        rows = f"""
            with compared as (
                select s.id as new_id, s.amount as new_amount, s.item as new_item, t.*,
                    case when t.id is null then array('new')
                    when s.amount is distinct from t.amount or s.item is distinct from t.item
                    then if(s.id is null, array('kept'), array('new', 'ended')) else array('kept') end as changes
                from ({state(number)}) s full join parquet.`{before}` t on s.id = t.id and t.valid_to is null
            )
            select if(change = 'new', new_id, id) as id, if(change = 'new', new_amount, amount) as amount,
                if(change = 'new', new_item, item) as item, if(change = 'new', {at}, updated_at) as updated_at,
                if(change = 'new', md5(concat_ws('|', new_id, {at})), scd_id) as scd_id,
                if(change = 'new', {at}, valid_from) as valid_from,
                case change when 'ended' then {at} when 'kept' then valid_to end as valid_to
            from compared lateral view explode(changes) each as change
        """
        bench.spark.sql(rows).write.mode("overwrite").parquet(after)

    return _compared(bench, "dbt snapshot, 1 % changed", sides, "history", statement, rebuild)
