"""LakeSession: SQL on a lake, with Spark."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, TypeGuard

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from ..lake.catalog import SnapshotInfo
from ..lake.commit.staged import CommitInfo
from ..lake.databases.connection_string import parse_catalog
from ..lake.errors import LakeError, NotFoundError
from ..lake.migration import Migration, migrate
from ..lake.missing_names import lake_not_found
from ..lake.paths import new_uuid7, scheme_of, spark_path
from ..lake.retry import Retry
from ..lake.snapshot import LakeState, Macro, Table, View
from ..lake.transaction import ChangeCounts, Transaction
from .change.command_context import CommandContext
from .commands.changed_lake import changed_lake
from .commands.maintenance import MAINTENANCE_STATEMENTS, is_of_lake, maintained
from .commands.procedures import argument_values, call_on_lake, is_lake_procedure, table_function_query
from .commands.registry import CATALOG_COMMANDS, COMMANDS
from .engine.errors import errors_in_author_words
from .engine.progress import Progress
from .engine.spark_session import Engine
from .inputs import Input, inputs_of, staged_before
from .maintenance.context import MaintenanceContext
from .read.lakes import Lake
from .read.missing_names import sql_of_spark
from .read.planner import Planner
from .results import Result
from .shared_transaction import Fold, SharedTransaction
from .sql import statements as st
from .sql.quoting import quoted
from .sql.repeatability import normalized
from .transactions import ThreadTransactions

_SETTING_WORDS = ("SET ", "RESET", "DECLARE ")
"""What statements begin with that set something in Spark's session."""


class LakeSession:
    """SQL on a lake, with Spark.

    Outside of a transaction, each statement that changes something is one snapshot. Threads may share a session;
    each has a transaction of its own.
    """

    def __init__(
        self,
        catalog: str,
        data_path: str | None = None,
        *,
        spark: SparkSession | Mapping[str, Any] | None = None,
        master: str | None = None,
        remote: str | None = None,
        database: str = "lake",
        schema: str = "main",
        author: str | None = None,
        metadata_schema: str | None = None,
        read_only: bool = False,
        create_if_not_exists: bool = True,
        data_inlining_row_limit: int | None = None,
        format_version: str | None = None,
        encrypted: bool = False,
        retry: Mapping[str, Any] | Retry | None = None,
        storage: Mapping[str, str] | None = None,
        attach: Sequence[Mapping[str, Any]] = (),
        override_data_path: bool = False,
        snapshot_version: int | None = None,
    ) -> None:
        settings: Mapping[str, Any] = {}
        if isinstance(spark, Mapping):
            settings, spark = spark, None
        retries = retry if isinstance(retry, Retry) else Retry(**(retry or {}))
        main = Lake.open(
            database,
            catalog,
            data_path,
            storage=storage,
            retry=retries,
            metadata_schema=metadata_schema,
            read_only=read_only,
            create_if_not_exists=create_if_not_exists,
            override_data_path=override_data_path,
            snapshot_version=snapshot_version,
            data_inlining_row_limit=data_inlining_row_limit,
            format_version=format_version,
            encrypted=encrypted,
        )
        self._lakes = {database.lower(): main}
        for attached in attach:
            options = {**attached}
            name = str(options.pop("name"))
            self._lakes[name.lower()] = Lake.open(
                name,
                options.pop("catalog"),
                options.pop("data_path", None),
                storage=storage,
                retry=retries,
                **options,
            )
        self._engine = Engine(
            spark,
            master=master or settings.get("master"),
            remote=remote or settings.get("remote"),
            config=settings.get("config"),
            storage=storage,
            schemes={scheme_of(spark_path(lake.catalog.data_path)) for lake in self._lakes.values()},
            keep_alive=settings.get("keep_alive"),
            project=f"{os.getcwd()} {main.catalog.database.location}",
        )
        self._planner = Planner(self._engine)
        author = author if author is not None else _operating_system_user()
        self._transactions = ThreadTransactions(self._lakes, database.lower(), schema, author)
        self._session_settings: dict[str, None] = {}

    @staticmethod
    def migrate(
        catalog: str, to_version: str | None = None, *, metadata_schema: str | None = None, dry_run: bool = False
    ) -> Migration:
        """Brings a lake to a later format version, by default the latest one, without opening it."""
        return migrate(parse_catalog(catalog), to_version, metadata_schema=metadata_schema, dry_run=dry_run)

    @property
    def database(self) -> str:
        """The name of the session's own lake."""
        return self._transactions.default_lake

    @property
    def default_schema(self) -> str:
        """The schema of unqualified names, unless the thread ran USE."""
        return self._transactions.default_schema

    @property
    def author(self) -> str | None:
        """The author of commits that name none."""
        return self._transactions.author

    # -- Spark

    @property
    def spark(self) -> SparkSession:
        """The SparkSession. It starts when it is first needed."""
        return self._engine.spark()

    @property
    def spark_started(self) -> bool:
        return self._engine.started

    @property
    def spark_address(self) -> str:
        """Where Spark runs, without secrets."""
        return "Spark Connect" if self._engine.is_connect() else str(self.spark.sparkContext.master)

    def start_spark(self) -> None:
        """Starts Spark in the background. Raises if it cannot start at all, for example without Java."""
        self._engine.start_in_background()

    def raise_start_failure(self) -> None:
        """Raises if Spark did not start in the background."""
        self._engine.raise_start_failure()

    def stop_warm_spark(self) -> bool:
        """Stops the Spark that `spark.keep_alive` keeps for this project. Returns whether there was one."""
        return self._engine.warm_server().stop()

    def job_tag(self, tag: str, description: str | None = None) -> AbstractContextManager[None]:
        """Tags the Spark jobs of a block, for `cancel`. With a description, `spark_progress` tells how far they are."""
        return self._engine.tagged(tag, description)

    def spark_progress(self, tag: str) -> Progress:
        """How far the Spark jobs with a tag and a description are. May be called in any thread."""
        return self._engine.progress(tag)

    @property
    def spark_page(self) -> str | None:
        """The address of Spark's web page, if it is on."""
        return self._engine.web_page()

    def cancel(self, tag: str) -> None:
        """Cancels the Spark jobs with a tag in every thread. Their statements fail."""
        self._engine.interrupt(tag)

    # -- statements

    def sql(self, text: str) -> DataFrame:
        """Runs a statement. Returns the rows of a query, or one row with the snapshot and the rows affected."""
        result = self.execute(text)
        if result.dataframe is not None:
            return result.dataframe
        if result.table is not None:
            return self._planner.arrow_dataframe(result.table)
        return self._planner.arrow_dataframe(
            pa.table(
                {
                    "snapshot_id": pa.array([result.snapshot_id], pa.int64()),
                    "rows_affected": pa.array([result.rows_affected], pa.int64()),
                }
            )
        )

    def execute(self, text: str) -> Result:
        """Runs one statement."""
        return self.run(self.parse(text))

    def call(self, procedure: str, *arguments: Any, **named: Any) -> pa.Table:
        """Calls a procedure that maintains the lake, as CALL does. Returns its rows.

        >>> lake.call("ducklake_merge_adjacent_files", "main.orders", dry_run=True)  # doctest: +SKIP
        """
        if not is_lake_procedure(procedure):
            raise NotFoundError(f"there is no procedure {procedure} that maintains a lake; others are called in SQL")
        with errors_in_author_words():
            return self._call_on_lake(self._transactions.current_lake, procedure, arguments, named)

    def parse(self, text: str) -> st.Statement:
        """Parses one statement for `run`. A name in double quotes is one where the session's settings say so."""
        if '"' in text and self._engine.double_quotes_names():
            text = st.double_quoted_as_names(text)
        return st.parse(text)

    def insert(self, name: str, rows: pa.Table) -> Result:
        """Inserts an Arrow table into a table whose columns have the same names and types."""
        parts = st.parse_name(name)
        lake = self._lake_name(parts[0]) if len(parts) == 3 else self._transactions.current_lake
        return self._change(lake, lambda context: context.write_arrow(rows, context.table(parts)))

    def run(self, statement: st.Statement) -> Result:
        """Runs a parsed statement."""
        with errors_in_author_words():
            return self._run(statement)

    def _run(self, statement: st.Statement) -> Result:
        if isinstance(statement, st.Query):
            self._transactions.prevent_replay()
            return Result(dataframe=self._plan(statement.text))
        if isinstance(statement, st.Begin | st.Commit | st.Rollback):
            return self._control_transaction(statement)
        if isinstance(statement, st.Use):
            self._transactions.prevent_replay()
            return self._use(statement)
        if isinstance(statement, st.CreateTempView):
            text = statement.text
            if "REPLACE" not in text.upper().split()[:3]:
                self._transactions.prevent_replay()  # a second run would fail, since the view exists
            return Result(dataframe=self._transactions.run(lambda: self._plan(text, keep_views=True)))
        if isinstance(statement, st.Passthrough) or self._describes_function_of_spark(statement):
            rows = self.spark.sql(statement.text)
            if not self.in_transaction:
                self._note_setting(normalized(statement.text))
            return Result(dataframe=rows)
        if isinstance(statement, st.MaintenanceStatement):
            context = self._transactions.query_context()
            if not is_of_lake(context, statement):
                assert statement.name is not None
                return Result(dataframe=sql_of_spark(self.spark, statement.text, statement.name, context))
            if isinstance(statement, st.UnreadStatement):
                raise statement.error
            if isinstance(statement, st.Optimize | st.Vacuum | st.Analyze):
                return Result(table=self._maintain(statement))
        catalog_command = CATALOG_COMMANDS.get(type(statement))
        if catalog_command is not None:
            self._transactions.prevent_replay()
            return Result(table=catalog_command(self._transactions.query_context(), statement))
        if isinstance(statement, st.Call) and is_lake_procedure(statement.name[-1]):
            positional, named = argument_values(statement)
            lake = changed_lake(statement, self._transactions.query_context())
            return Result(table=self._call_on_lake(lake, statement.name[-1], positional, named))
        if isinstance(statement, st.Call) and (query := table_function_query(statement, self._lakes)) is not None:
            return self._run(st.Query(query))
        command = COMMANDS.get(type(statement))
        if command is None:
            raise LakeError(f"{type(statement).__name__} is no statement that a lake takes")
        lake = changed_lake(statement, self._transactions.query_context())
        return self._change(lake, lambda context: command(context, statement))

    def _note_setting(self, text: str) -> None:
        if text.upper().startswith(_SETTING_WORDS):
            self._session_settings.pop(text, None)
            self._session_settings[text] = None

    def _describes_function_of_spark(self, statement: st.Statement) -> TypeGuard[st.DescribeFunction]:
        if not isinstance(statement, st.DescribeFunction):
            return False
        return self._transactions.query_context().find_macro(statement.name) is None

    def query_columns(self, text: str) -> list[tuple[str, DataType]]:
        """The names and types of a query's columns."""
        with errors_in_author_words():
            return [(f.name, f.dataType) for f in self._plan(text).schema.fields]

    # -- transactions

    @contextmanager
    def transaction(
        self, author: str | None = None, message: str | None = None, extra_info: str | None = None
    ) -> Iterator[Transaction]:
        """Commits everything in the block as one snapshot, or nothing if an error leaves the block.

        A block inside another one is merged into it.
        """
        with self._transactions.new_frame() as frame:
            transaction = frame.transactions[self.database]
            given = {"author": author, "message": message, "extra_info": extra_info}
            fields = {name: value for name, value in given.items() if value is not None}
            transaction.commit_info = replace(transaction.commit_info, **fields)
            yield transaction

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Has everything in the block read the same snapshot. What it would change is dropped."""
        frame = self._transactions.begin()
        try:
            yield
        finally:
            self._transactions.discard(frame)

    @property
    def in_transaction(self) -> bool:
        return self._transactions.in_transaction

    def begin(self) -> None:
        """Begins a transaction, as BEGIN does. `commit` or `rollback` ends it."""
        if self.in_transaction:
            raise LakeError("a transaction has begun already; COMMIT or ROLLBACK it first")
        self._transactions.begin()

    def commit(self, info: CommitInfo | None = None, noted_in: str | None = None, label: Any = None) -> Result:
        """Commits the running transaction. `info` applies where no statement in it set a message.

        The lake `noted_in` gets a snapshot with the info also if nothing changed in it. In a shared transaction the
        changes are folded into it, under the label.
        """
        frame = self._transactions.running("COMMIT")
        frame.label = label
        if noted_in is not None:
            self.transaction_on(noted_in).stage(is_snapshot_without_changes=True)
        if info is not None:
            for transaction in frame.transactions.values():
                if transaction.commit_info.message is None:
                    transaction.commit_info = replace(info, author=info.author or transaction.commit_info.author)
        is_staged = self.shared is not None and any(t.is_changed for t in frame.transactions.values())
        return Result(snapshot_id=self._transactions.complete(frame), is_staged=is_staged)

    def rollback(self) -> None:
        self._transactions.discard(self._transactions.running("ROLLBACK"))

    def replay(self) -> bool:
        """Reruns the transaction whose commit failed, in a new transaction on the newest snapshot.

        Returns False and runs nothing if the transaction returned rows, which the caller may have acted on, if it
        holds a statement that cannot run twice, or if definitions changed since it began.
        """
        return self._transactions.replay()

    def begin_shared(self) -> SharedTransaction:
        """Begins a transaction in which those of all threads are nested, until it is published or discarded."""
        return self._transactions.share()

    @property
    def shared(self) -> SharedTransaction | None:
        """The shared transaction, if one has begun."""
        return self._transactions.shared

    def publish(self, info: CommitInfo, kept: Sequence[Fold]) -> Result:
        """Ends the shared transaction: commits these of its changes as one snapshot, and removes the files of others.

        If the commit fails, nothing is changed, and the files of all are deleted.
        """
        committed = self._transactions.publish(info, kept)
        return Result(snapshot_id=committed.snapshot.id if committed.changed else None)

    def discard_shared(self) -> None:
        """Ends the shared transaction without a trace: its changes are dropped, and their files deleted."""
        self._transactions.discard_shared()

    def commit_message(self, message: str | None) -> AbstractContextManager[None]:
        """Sets the commit message of the statements in the block that are transactions of their own."""
        return self._transactions.commit_message(message)

    @property
    def has_changes(self) -> bool:
        """Whether the running transaction would change anything."""
        return any(t.is_changed for t in self._transactions.running("has_changes").transactions.values())

    def change_counts(self) -> ChangeCounts:
        """The rows and files that the running transaction would commit now."""
        transactions = self._transactions.running("change_counts()").transactions.values()
        return sum((t.change_counts() for t in transactions if t.is_changed), ChangeCounts())

    def inputs(self) -> list[Input]:
        """The lake relations that the running transaction read, at the versions that it read."""
        frame = self._transactions.running("inputs()")
        return inputs_of(frame.reads, self._lakes, frame.transactions)

    def dependencies(self) -> tuple[Mapping[str, Macro], frozenset[str]]:
        """What the running transaction read besides relations: functions of lakes by name, and what is in no lake."""
        frame = self._transactions.running("dependencies()")
        return dict(frame.functions), frozenset(frame.outside)

    @property
    def session_settings(self) -> tuple[str, ...]:
        """The statements outside of transactions that set something in Spark's session, each where it last ran."""
        return tuple(self._session_settings)

    def is_known_function(self, name: str) -> bool:
        """Whether Spark itself has a function. Starts Spark."""
        return self._planner.is_builtin(name)

    # -- lakes

    def state(self, lake: str | None = None) -> LakeState:
        """The schemas, tables and views of a lake, as the running transaction sees them."""
        return self.transaction_on(lake).state

    def transaction_on(self, lake: str | None = None) -> Transaction:
        """The thread's transaction on a lake. Outside of one it reads the newest snapshot, and is of no other use."""
        return self._transactions.query_context().transaction_on(self._lake_name(lake or self.database))

    def is_staged(self, relation: Table | View | Macro, lake: str | None = None) -> bool:
        """Whether the shared transaction had changed a relation when the running one began in it."""
        return self.shared is not None and relation.id in staged_before(self.transaction_on(lake))

    def base_snapshot(self, lake: str | None = None) -> SnapshotInfo:
        """The snapshot of a lake that the running transaction reads."""
        return self.transaction_on(lake).base

    def lake(self, name: str | None = None) -> Lake:
        """The session's own lake, or an attached one."""
        return self._lakes[self._lake_name(name or self.database)]

    @property
    def lakes(self) -> list[Lake]:
        """The session's own lake and the attached ones."""
        return list(self._lakes.values())

    def check_writable(self) -> None:
        """Raises if the lake cannot be written: writes a row, reads it back and removes it again."""
        lake = self.lake()
        name = f"ducklake_check_{new_uuid7().replace('-', '')}"
        frame = self._transactions.begin()
        try:
            in_a_file = "tblproperties ('data_inlining_row_limit' = '0')"
            self.execute(f"create table {quoted(self.database)}.main.{name} {in_a_file} as select 1 as id")
            table = self.state().table("main", name)
            folder = self.state().table_folder(lake.catalog.data_path, table)
            try:
                self.sql(f"select id from {quoted(self.database)}.main.{name}").collect()
                with lake.catalog.write():
                    pass
            finally:
                lake.filesystem.delete_dir(lake.native_path(folder))
        finally:
            self._transactions.discard(frame)

    def attach(self, name: str, catalog: str, **options: Any) -> None:
        """Attaches another lake. Its tables are then `name.schema.table`."""
        if name.lower() in self._lakes:
            raise LakeError(f"a lake is attached as {name} already")
        self._lakes[name.lower()] = Lake.open(name, catalog, options.pop("data_path", None), **options)

    def close(self) -> None:
        """Ends the session: rolls an open transaction back, and stops Spark if the session started it."""
        self._transactions.discard_all()
        self.discard_shared()
        self._engine.stop()
        for lake in self._lakes.values():
            lake.catalog.close()

    def __enter__(self) -> LakeSession:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        main = self._lakes[self.database]
        return f"LakeSession({main.catalog.database.location!r}, data_path={main.catalog.data_path!r})"

    # -- how statements run

    def _plan(self, text: str, keep_views: bool = False) -> DataFrame:
        return self._planner.query(text, self._transactions.query_context(), keep_views)

    def _change(self, lake: str, change: Callable[[CommandContext], int]) -> Result:
        """Applies a change as a whole or not at all: in the running transaction, or in one of its own."""
        notes: list[str] = []
        if self.in_transaction:
            rows = self._transactions.run(lambda: self._stage(lake, change, notes))
            return Result(rows_affected=rows, notes=tuple(notes))
        rows = self._lakes[lake].catalog.retry.on_conflict(lambda: self._stage(lake, change, notes))
        return Result(self._transactions.last_snapshot, self.shared is not None, rows_affected=rows, notes=tuple(notes))

    def _stage(self, lake: str, change: Callable[[CommandContext], int], notes: list[str]) -> int:
        """Stages a change in a nested transaction, so that a statement that fails leaves nothing behind."""
        notes.clear()
        in_transaction = self.in_transaction
        with self._transactions.running_or_new_frame() as frame:
            transaction = self._transactions.transaction_on(lake, frame).nested()
            context = self._transactions.query_context(frame, {lake: transaction})
            rows = change(CommandContext(context, self._planner, transaction, self._lakes[lake], in_transaction, notes))
            transaction.merge_into_parent()
        return rows

    def _call_on_lake(self, lake: str, procedure: str, positional: Sequence[Any], named: Mapping[str, Any]) -> pa.Table:
        """Calls a procedure on a lake. As in DuckDB, the first argument may be the lake's name."""
        self._check_no_transaction(procedure)
        if positional and isinstance(positional[0], str) and positional[0].lower() in self._lakes:
            lake, positional = positional[0].lower(), positional[1:]
        return call_on_lake(self._maintenance_context(lake), procedure, positional, named)

    def _maintain(self, statement: st.Optimize | st.Vacuum | st.Analyze) -> pa.Table:
        self._check_no_transaction(type(statement).__name__.upper())
        lake, table_name = maintained(self._transactions.query_context(), statement)
        return MAINTENANCE_STATEMENTS[type(statement)](
            self._maintenance_context(lake.name.lower()), table_name, statement
        )

    def _check_no_transaction(self, operation: str) -> None:
        if self.in_transaction:
            raise LakeError(f"{operation} can not be part of a transaction; COMMIT or ROLLBACK it first")
        if self.shared is not None:
            raise LakeError(
                f"{operation} can not be part of a run that is published as one snapshot; run it after that"
            )

    def _maintenance_context(self, lake: str) -> MaintenanceContext:
        schema = (
            self._transactions.query_context().current_schema if lake == self._transactions.current_lake else "main"
        )
        others = tuple(other for name, other in self._lakes.items() if name != lake)
        return MaintenanceContext(self._lakes[lake], self._planner, self.author, schema, others)

    def _lake_name(self, name: str) -> str:
        """The name of a lake of the session in lower case. Raises if the session has no such lake."""
        if name.lower() not in self._lakes:
            raise lake_not_found(name, self._lakes)
        return name.lower()

    def _control_transaction(self, statement: st.Begin | st.Commit | st.Rollback) -> Result:
        if isinstance(statement, st.Commit):
            return self.commit()
        if isinstance(statement, st.Begin):
            self.begin()
        else:
            self.rollback()
        return Result()

    def _use(self, statement: st.Use) -> Result:
        name = statement.name
        if statement.kind == "catalog" or (
            len(name) == 1 and statement.kind is None and name[0].lower() in self._lakes
        ):
            self._transactions.use(self._lake_name(name[0]), "main")
            return Result()
        lake = self._lake_name(name[0]) if len(name) == 2 else self._transactions.current_lake
        schema = self._transactions.query_context().schema(self._lakes[lake], name[-1])
        self._transactions.use(lake, schema.name)
        return Result()


def _operating_system_user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
