"""LakeSession: SQL on a lake, with Spark."""

from __future__ import annotations

import getpass
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType

from ..lake.catalog import Retry, SnapshotInfo
from ..lake.commit.staged import CommitInfo
from ..lake.errors import LakeError, NotFoundError
from ..lake.paths import new_uuid7, scheme_of
from ..lake.snapshot import LakeState
from ..lake.transaction import Transaction, Volume
from .change.command_context import CommandContext
from .commands import show
from .commands.registry import COMMANDS
from .engine.spark_session import Engine
from .read.context import Found, QueryContext
from .read.lakes import Lake
from .read.planner import Planner
from .results import Input, Result, inputs_at
from .sql import statements as st
from .sql.types import quoted
from .transactions import ThreadState, TransactionFrame

T = TypeVar("T")


class LakeSession:
    """SQL on a lake, with Spark.

    Outside of a transaction each statement that changes something is one snapshot. Threads may share
    a session; each has a transaction of its own.
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
        )
        self._lakes = {database.lower(): main}
        for given in attach:
            other = {**given}
            name = str(other.pop("name"))
            self._lakes[name.lower()] = Lake.open(
                name,
                other.pop("catalog"),
                other.pop("data_path", None),
                storage=storage,
                retry=retries,
                **other,
            )
        self.database = database.lower()
        self.default_schema = schema
        self.author = author if author is not None else _user()
        self._engine = Engine(
            spark,
            master=master or settings.get("master"),
            remote=remote or settings.get("remote"),
            config=settings.get("config"),
            storage=storage,
            local_files=scheme_of(main.catalog.data_path) in (None, "file"),
        )
        self._planner = Planner(self._engine)
        self._thread = ThreadState()

    # -- what a user sees

    @property
    def spark(self) -> SparkSession:
        """The SparkSession; it is started when it is first needed."""
        return self._engine.spark()

    @property
    def spark_started(self) -> bool:
        return self._engine.started

    @property
    def spark_address(self) -> str:
        """Where Spark runs, without secrets."""
        return "Spark Connect" if self._engine.is_connect() else str(self.spark.sparkContext.master)

    def start_spark(self) -> None:
        """Starts Spark in the background."""
        self._engine.start_in_background()

    def sql(self, text: str) -> DataFrame:
        """The rows of a query as a DataFrame; other statements are carried out, and tell what they did."""
        result = self.execute(text)
        if result.dataframe is not None:
            return result.dataframe
        if result.table is not None:
            return self._planner.local(result.table)
        return self._planner.local(
            pa.table(
                {
                    "snapshot_id": pa.array([result.snapshot_id], pa.int64()),
                    "rows_affected": pa.array([result.rows_affected], pa.int64()),
                }
            )
        )

    def execute(self, text: str) -> Result:
        """Carries out one statement."""
        return self.run(st.parse(text))

    def insert(self, name: str, rows: pa.Table) -> Result:
        """Adds rows that the driver has to a table whose columns are of these names and types."""
        parts = st.parse_name(name)
        lake = self._known(parts[0]) if len(parts) == 3 else self._current_lake
        return self._staged(lake, lambda scope: scope.insert(rows, scope.table(parts)))

    def run(self, statement: st.Statement) -> Result:
        """Carries out a statement that is parsed already."""
        if isinstance(statement, st.Query):
            return Result(dataframe=self._query(statement.text))
        if isinstance(statement, st.Begin | st.Commit | st.Rollback):
            return self._control(statement)
        if isinstance(statement, st.Use):
            self._show()
            return self._use(statement)
        if isinstance(statement, st.Passthrough):
            return Result(dataframe=self.spark.sql(statement.text))
        if isinstance(statement, st.CreateTempView):
            text = statement.text
            if "REPLACE" not in text.upper().split()[:3]:
                self._show()  # it can be made but once
            return Result(dataframe=self._step(lambda: self._plan(text, keep_views=True)))
        shown = show.SHOWS.get(type(statement))
        if shown is not None:
            self._show()
            with self._reading() as context:
                return Result(table=shown(context, statement))
        return self._change(statement)

    @contextmanager
    def transaction(
        self, author: str | None = None, message: str | None = None, extra_info: str | None = None
    ) -> Iterator[Transaction]:
        """Everything in the block becomes one snapshot, or nothing if an error leaves it.

        A block inside another folds into it.
        """
        frame = self._begin()
        transaction = frame.transactions[self.database]
        transaction.commit_info = replace(
            transaction.commit_info,
            **{
                key: value
                for key, value in (("author", author), ("message", message), ("extra_info", extra_info))
                if value is not None
            },
        )
        try:
            yield transaction
        except BaseException:
            self._leave(frame)
            raise
        self._leave(frame)
        self._finish(frame)

    @property
    def in_transaction(self) -> bool:
        return bool(self._thread.open)

    def begin(self) -> None:
        """Begins a transaction that `commit` or `rollback` ends, as the statements of these names do."""
        if self._thread.open:
            raise LakeError("a transaction has begun already; COMMIT or ROLLBACK it first")
        self._begin()

    def commit(self, info: CommitInfo | None = None) -> Result:
        """Commits the running transaction; `info` holds where no statement in it gave a message of its own."""
        frame = self._running("COMMIT")
        if info is not None:
            for transaction in frame.transactions.values():
                if transaction.commit_info.message is None:
                    transaction.commit_info = replace(info, author=info.author or transaction.commit_info.author)
        self._leave(frame)
        return self._finish(frame)

    def rollback(self) -> None:
        self._leave(self._running("ROLLBACK"))

    def repeat(self) -> bool:
        """Does what the transaction did that was not committed once more, on the newest snapshot, in a new one.

        That is not for who acted on rows that it read, nor where definitions changed: then it says False.
        """
        ended = self._thread.ended
        if ended is None or ended.shown or self._thread.open:
            return False
        frame = self._begin()
        try:
            for name, before in ended.transactions.items():
                if self._transaction(frame, name).base.schema_version != before.base.schema_version:
                    self._leave(frame)
                    return False
            for step in ended.steps:
                self._step(step)
        except BaseException:
            self._leave(frame)
            raise
        return True

    def columns(self, text: str) -> list[tuple[str, DataType]]:
        """The names and types of a query's columns."""
        return [(f.name, f.dataType) for f in self._plan(text).schema.fields]

    def volume(self) -> Volume:
        """How many rows and files the running transaction would commit now."""
        volumes = [t.volume() for t in self._running("volume()").transactions.values() if t.is_changed]
        return sum(volumes, Volume())

    def inputs(self) -> list[Input]:
        """The lake relations that the running transaction read, as the versions that it read."""
        by_version: dict[tuple[str, int], list[Found]] = defaultdict(list)
        for (lake, _, at, _), found in self._running("inputs()").reads.items():
            by_version[lake.lower(), at].append(found)
        inputs: list[Input] = []
        for (lake, at), some in by_version.items():
            inputs += inputs_at(self._lakes[lake], at, some)
        return sorted(inputs, key=lambda i: (i.name, i.snapshot))

    def state(self, lake: str | None = None) -> LakeState:
        """The schemas, tables and views that there are, as the running transaction sees them."""
        with self._reading() as context:
            return context.transactions(self._known(lake or self.database)).state

    def base(self, lake: str | None = None) -> SnapshotInfo:
        """The snapshot of a lake that the running transaction reads."""
        with self._reading() as context:
            return context.transactions(self._known(lake or self.database)).base

    def lake(self, name: str | None = None) -> Lake:
        """The session's lake, or an attached one."""
        return self._lakes[self._known(name or self.database)]

    @property
    def lakes(self) -> list[Lake]:
        """The session's lake and those attached to it."""
        return list(self._lakes.values())

    @contextmanager
    def messages(self, message: str | None) -> Iterator[None]:
        """Gives the thread's statements in the block a message, where they are transactions of their own."""
        before, self._thread.message = self._thread.message, message
        try:
            yield
        finally:
            self._thread.message = before

    def tagged(self, tag: str) -> AbstractContextManager[None]:
        """Marks the Spark jobs of a block, for `cancel`."""
        return self._engine.tagged(tag)

    def cancel(self, tag: str) -> None:
        """Stops the Spark jobs that run under a tag in any thread; their statements fail."""
        self._engine.interrupt(tag)

    def prove_write(self) -> None:
        """Raises if the lake can not be written: writes a row, reads it back, and takes it away again."""
        lake = self.lake()
        name = f"ducklake_check_{new_uuid7().replace('-', '')}"
        frame = self._begin()
        try:
            self.execute(f"create table {quoted(self.database)}.main.{name} as select 1 as id")
            table = self.state().table("main", name)
            folder = self.state().folder(lake.catalog.data_path, table)
            try:
                self.sql(f"select id from {quoted(self.database)}.main.{name}").collect()
                with lake.catalog.write():
                    pass
            finally:
                lake.filesystem.delete_dir(lake.native_path(folder))
        finally:
            self._leave(frame)

    def attach(self, name: str, catalog: str, **options: Any) -> None:
        """Attaches another lake, whose tables are then `name.schema.table`."""
        if name.lower() in self._lakes:
            raise LakeError(f"a lake is attached as {name} already")
        self._lakes[name.lower()] = Lake.open(name, catalog, options.pop("data_path", None), **options)

    def close(self) -> None:
        """Ends the session: an open transaction is rolled back, and Spark is stopped if it was started here."""
        self._thread.open.clear()
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

    # -- statements

    def _query(self, text: str) -> DataFrame:
        self._show()
        return self._plan(text)

    def _plan(self, text: str, keep_views: bool = False) -> DataFrame:
        with self._reading() as context:
            return self._planner.query(text, context, keep_views)

    def _show(self) -> None:
        """Notes that somebody sees what the running transaction does."""
        if self._thread.open:
            self._thread.open[-1].shown = True

    def _step(self, step: Callable[[], T]) -> T:
        """Does something in the running transaction, or in none, and notes it."""
        result = step()
        if self._thread.open:
            self._thread.open[-1].steps.append(step)
        return result

    def _change(self, statement: st.Statement) -> Result:
        command = COMMANDS.get(type(statement))
        if command is None:
            raise LakeError(f"{type(statement).__name__} is no statement that a lake takes")
        return self._staged(self._lake_of(statement), lambda scope: command(scope, statement))

    def _staged(self, lake: str, change: Callable[[CommandContext], int]) -> Result:
        """Makes a change in the running transaction, whole or not at all, or in one of its own."""
        if self.in_transaction:
            return Result(rows_affected=self._step(lambda: self._make(lake, change)))
        rows = self._lakes[lake].catalog.retry.planned(lambda: self._make(lake, change))
        return Result(snapshot_id=self._last_snapshot(), rows_affected=rows)

    def _make(self, lake: str, change: Callable[[CommandContext], int]) -> int:
        in_transaction = self.in_transaction
        with self._frame() as frame:
            transaction = self._transaction(frame, lake).nested()
            context = self._context(TransactionFrame({**frame.transactions, lake: transaction}, frame.reads))
            rows = change(CommandContext(context, self._planner, transaction, self._lakes[lake], in_transaction))
            transaction.fold()
        return rows

    def _lake_of(self, statement: Any) -> str:
        """The lake that a statement changes, from the first part of its name."""
        name: Sequence[str] = getattr(statement, "name", ())
        full = 4 if isinstance(statement, st.CommentOn) and statement.kind == "column" else 3
        if isinstance(statement, st.CreateSchema | st.DropSchema) or (
            isinstance(statement, st.CommentOn) and statement.kind == "schema"
        ):
            full = 2
        if isinstance(statement, st.Call) and len(name) == 2 and name[0].lower() in self._lakes:
            return name[0].lower()
        if len(name) >= full and name[0].lower() in self._lakes:
            return name[0].lower()
        if len(name) == full:
            self._known(name[0])
        return self._current_lake

    def _known(self, lake: str) -> str:
        if lake.lower() not in self._lakes:
            raise NotFoundError(f"there is no lake {lake}; there are {', '.join(self._lakes)}")
        return lake.lower()

    def _control(self, statement: st.Begin | st.Commit | st.Rollback) -> Result:
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
            self._thread.lake, self._thread.schema = self._known(name[0]), "main"
            return Result()
        lake = self._known(name[0]) if len(name) == 2 else self._current_lake
        with self._reading() as context:
            schema = context.transactions(lake).state.schema(name[-1])
        self._thread.lake, self._thread.schema = lake, schema.name
        return Result()

    # -- transactions

    @property
    def _current_lake(self) -> str:
        return self._thread.lake or self.database

    def _last_snapshot(self) -> int | None:
        return self._thread.committed.snapshot.id if self._thread.committed else None

    def _running(self, what: str) -> TransactionFrame:
        if not self._thread.open:
            raise LakeError(f"{what} without a transaction: BEGIN one first")
        return self._thread.open[-1]

    def _begin(self) -> TransactionFrame:
        """A new frame of transactions, nested in the thread's running one if there is one."""
        if self._thread.open:
            frame = self._thread.open[-1].nested()
        else:
            frame = TransactionFrame({self.database: self._new_transaction(self.database)})
        self._thread.open.append(frame)
        return frame

    def _leave(self, frame: TransactionFrame) -> None:
        self._thread.open = [f for f in self._thread.open if f is not frame]

    def _finish(self, frame: TransactionFrame) -> Result:
        """Folds a frame into the one around it, or commits it."""
        outer = self._thread.open[-1] if self._thread.open else None
        if outer is not None:
            for name, transaction in frame.transactions.items():
                if transaction.parent is None:
                    outer.transactions[name] = transaction
                else:
                    transaction.fold()
            outer.reads.update(frame.reads)
            outer.steps += frame.steps
            outer.shown |= frame.shown
            return Result()
        changed = [name for name, t in frame.transactions.items() if t.is_changed]
        if len(changed) > 1:
            raise LakeError(
                "a transaction can change one lake, since two catalog databases do not commit together;"
                " change the other lake in a transaction of its own"
            )
        self._thread.committed, self._thread.ended = None, frame
        for name in changed:
            self._thread.committed = frame.transactions[name].commit()
            self._thread.snapshots[name] = self._thread.committed.snapshot.id
        self._thread.ended = None
        return Result(snapshot_id=self._last_snapshot())

    @contextmanager
    def _frame(self) -> Iterator[TransactionFrame]:
        """The thread's transactions; where none has begun, new ones that are committed at the end."""
        if self._thread.open:
            yield self._thread.open[-1]
            return
        frame = self._begin()
        try:
            yield frame
        except BaseException:
            self._leave(frame)
            raise
        self._leave(frame)
        self._finish(frame)

    @contextmanager
    def _reading(self) -> Iterator[QueryContext]:
        """A context for reading: the running transaction's, or one of the newest snapshot."""
        yield self._context(self._thread.open[-1] if self._thread.open else TransactionFrame({}))

    def _context(self, frame: TransactionFrame) -> QueryContext:
        schema = self._thread.schema or self.default_schema
        return QueryContext(
            self._lakes,
            lambda name: self._transaction(frame, name),
            self._current_lake,
            schema,
            frame.saw,
            self._thread.snapshots,
        )

    def _transaction(self, frame: TransactionFrame, name: str) -> Transaction:
        name = name.lower()
        if name not in frame.transactions:
            frame.transactions[name] = self._new_transaction(name)
        return frame.transactions[name]

    def _new_transaction(self, name: str) -> Transaction:
        transaction = self._lakes[name].begin()
        transaction.commit_info = CommitInfo(self.author, self._thread.message)
        return transaction


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
