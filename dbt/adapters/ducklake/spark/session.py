"""LakeSession: a statement in, a result out."""

from __future__ import annotations

import getpass
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from ..lake.catalog import Retry
from ..lake.changes import CommitInfo
from ..lake.errors import LakeError, NotFoundError
from ..lake.paths import scheme_of
from ..lake.transaction import Committed, Transaction
from . import show
from . import statements as st
from .commands import COMMANDS
from .connect import Engine
from .lakes import Lake
from .queries import Context, Planner
from .scope import Scope


@dataclass(frozen=True)
class Result:
    """What a statement did, or the rows that it asked for."""

    snapshot_id: int | None = None
    """The snapshot that a change was committed as; None inside a transaction, and for queries."""
    rows_affected: int = 0
    table: pa.Table | None = field(default=None, repr=False)
    """The rows of a statement that needed no Spark, such as SHOW TABLES."""
    dataframe: DataFrame | None = field(default=None, repr=False)
    """The rows of a query, which Spark computes when they are asked for."""

    def arrow(self) -> pa.Table:
        """The rows as an Arrow table."""
        if self.table is not None:
            return self.table
        if self.dataframe is not None:
            return self.dataframe.toArrow()
        return pa.table({})

    def stream(self) -> pa.RecordBatchReader:
        """The rows as a stream of Arrow record batches."""
        return self.arrow().to_reader()


class _Thread(threading.local):
    """What each thread has for itself: its transactions, and where it looks names up."""

    def __init__(self) -> None:
        self.open: list[dict[str, Transaction]] = []
        self.lake: str | None = None
        self.schema: str | None = None
        self.committed: Committed | None = None
        """What the thread's last commit did."""


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
        self._thread = _Thread()

    # -- what a user sees

    @property
    def spark(self) -> SparkSession:
        """The SparkSession; it is started when it is first needed."""
        return self._engine.spark()

    @property
    def spark_started(self) -> bool:
        return self._engine.started

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
        statement = st.parse(text)
        if isinstance(statement, st.Query):
            return Result(dataframe=self._query(statement.text))
        if isinstance(statement, st.Begin | st.Commit | st.Rollback):
            return self._control(statement)
        if isinstance(statement, st.Use):
            return self._use(statement)
        if isinstance(statement, st.Passthrough):
            return Result(dataframe=self.spark.sql(statement.text))
        if isinstance(statement, st.CreateTempView):
            with self._reading() as context:
                return Result(dataframe=self._planner.query(statement.text, context, keep_views=True))
        shown = show.SHOWS.get(type(statement))
        if shown is not None:
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
        transaction = frame[self.database]
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
        with self._reading() as context:
            return self._planner.query(text, context)

    def _change(self, statement: st.Statement) -> Result:
        command = COMMANDS.get(type(statement))
        if command is None:
            raise LakeError(f"{type(statement).__name__} is no statement that a lake takes")
        in_transaction = bool(self._thread.open)
        with self._frame() as frame:
            name = self._lake_of(statement)
            transaction = self._transaction(frame, name).nested()
            inner = {**frame, name: transaction}
            context = self._context(inner)
            rows = command(Scope(context, self._planner, transaction, self._lakes[name], in_transaction), statement)
            transaction.fold()
        return Result(snapshot_id=None if in_transaction else self._last_snapshot(), rows_affected=rows)

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
            raise NotFoundError(f"there is no lake {name[0]}; there are {', '.join(self._lakes)}")
        return self._current_lake

    def _control(self, statement: st.Begin | st.Commit | st.Rollback) -> Result:
        if isinstance(statement, st.Begin):
            if self._thread.open:
                raise LakeError("a transaction has begun already; COMMIT or ROLLBACK it first")
            self._begin()
            return Result()
        if not self._thread.open:
            word = type(statement).__name__.upper()
            raise LakeError(f"{word} without a transaction: BEGIN one first")
        frame = self._thread.open[-1]
        self._leave(frame)
        if isinstance(statement, st.Rollback):
            return Result()
        self._finish(frame)
        return Result(snapshot_id=self._last_snapshot())

    def _use(self, statement: st.Use) -> Result:
        name = statement.name
        if statement.kind == "catalog" or (
            len(name) == 1 and statement.kind is None and name[0].lower() in self._lakes
        ):
            if name[0].lower() not in self._lakes:
                raise NotFoundError(f"there is no lake {name[0]}; there are {', '.join(self._lakes)}")
            self._thread.lake, self._thread.schema = name[0].lower(), "main"
            return Result()
        lake = name[0].lower() if len(name) == 2 else self._current_lake
        if lake not in self._lakes:
            raise NotFoundError(f"there is no lake {name[0]}; there are {', '.join(self._lakes)}")
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

    def _begin(self) -> dict[str, Transaction]:
        """A new frame of transactions, one a lake, nested in the thread's running one if there is one."""
        if self._thread.open:
            frame = {name: t.nested() for name, t in self._thread.open[-1].items()}
        else:
            frame = {self.database: self._new_transaction(self.database)}
        self._thread.open.append(frame)
        return frame

    def _leave(self, frame: dict[str, Transaction]) -> None:
        self._thread.open = [f for f in self._thread.open if f is not frame]

    def _finish(self, frame: dict[str, Transaction]) -> None:
        """Folds a frame into the one around it, or commits it."""
        outer = self._thread.open[-1] if self._thread.open else None
        changed = [t for t in frame.values() if t.is_changed]
        if outer is not None:
            for name, transaction in frame.items():
                if transaction.parent is None:
                    outer[name] = transaction
                else:
                    transaction.fold()
            return
        if len(changed) > 1:
            raise LakeError(
                "a transaction can change one lake, since two catalog databases do not commit together;"
                " change the other lake in a transaction of its own"
            )
        self._thread.committed = None
        for transaction in changed:
            self._thread.committed = transaction.commit()

    @contextmanager
    def _frame(self) -> Iterator[dict[str, Transaction]]:
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
    def _reading(self) -> Iterator[Context]:
        """A context for reading: the running transaction's, or one of the newest snapshot."""
        if self._thread.open:
            yield self._context(self._thread.open[-1])
        else:
            yield self._context({})

    def _context(self, frame: dict[str, Transaction]) -> Context:
        schema = self._thread.schema or self.default_schema
        return Context(self._lakes, lambda name: self._transaction(frame, name), self._current_lake, schema)

    def _transaction(self, frame: dict[str, Transaction], name: str) -> Transaction:
        name = name.lower()
        if name not in frame:
            frame[name] = self._new_transaction(name)
        return frame[name]

    def _new_transaction(self, name: str) -> Transaction:
        transaction = self._lakes[name].begin()
        transaction.commit_info = CommitInfo(author=self.author)
        return transaction


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None
