"""The adapter: what dbt and macros may ask of a lake."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import agate
from dbt.adapters.base import BaseRelation, available
from dbt.adapters.base.impl import ConstraintSupport, FreshnessResponse
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse
from dbt.adapters.contracts.relation import RelationConfig
from dbt.adapters.events.logging import AdapterLogger
from dbt.adapters.spark.impl import SparkAdapter
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.contracts.metadata import CatalogTable
from dbt_common.exceptions import DbtRuntimeError

from . import configs, docs, python_models, seeds
from .column import DucklakeColumn
from .connections import DucklakeConnectionManager, Handle, LakeResponse
from .history.methods import History
from .history.node_commit import NodeCommit, command_of, label
from .lake.catalog import FORMAT_VERSION
from .lake.errors import LakeError, NotFoundError, SchemaChangeError
from .lake.facts import table_facts
from .lake.snapshot import LakeState, Macro, Schema, Table, View
from .relation import AS_OF, DucklakeRelation, Moments
from .spark.results import Result
from .spark.session import LakeSession
from .spark.sql.definitions import with_new_fields
from .spark.sql.statements import parse_name
from .spark.sql.types import query_type, quoted, string_literal

logger = AdapterLogger("DuckLake")

_NEEDS_SPARK = frozenset(("build", "run", "test", "snapshot", "show", "retry", "clone"))
"""The commands for which Spark is started while dbt reads the project."""


class DucklakeAdapter(History, SparkAdapter):
    Relation = DucklakeRelation
    Column = DucklakeColumn
    ConnectionManager = DucklakeConnectionManager
    AdapterSpecificConfigs = configs.DucklakeConfig
    connections: DucklakeConnectionManager

    CONSTRAINT_SUPPORT = {
        ConstraintType.not_null: ConstraintSupport.ENFORCED,
        ConstraintType.check: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.unique: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.primary_key: ConstraintSupport.NOT_SUPPORTED,
        ConstraintType.foreign_key: ConstraintSupport.NOT_SUPPORTED,
    }
    _capabilities = CapabilityDict(
        {
            capability: CapabilitySupport(support=Support.Full)
            for capability in (
                Capability.SchemaMetadataByRelations,
                Capability.TableLastModifiedMetadata,
                Capability.TableLastModifiedMetadataBatch,
                Capability.GetCatalogForSingleRelation,
                Capability.MicrobatchConcurrency,
            )
        }
    )

    def __init__(self, config: Any, mp_context: Any) -> None:
        super().__init__(config, mp_context)
        self.Relation = DucklakeRelation.bound(_moments(config))
        if command_of(config) in _NEEDS_SPARK and hasattr(config, "args"):
            self.connections.start_spark()

    # -- nodes

    @contextmanager
    def connection_named(
        self, name: str, query_header_context: Any = None, should_release_connection: bool = True
    ) -> Iterator[None]:
        node = query_header_context
        describe = NodeCommit(node, self.config) if hasattr(node, "resource_type") else None
        with (
            self.connections.described(describe, label(self.config, name)),
            super().connection_named(name, query_header_context, should_release_connection),
        ):
            yield

    def pre_model_hook(self, config: Any) -> None:
        configs.check(config)

    @property
    def _handle(self) -> Handle:
        return self.connections.get_thread_connection().handle

    @property
    def session(self) -> LakeSession:
        return self.connections.session

    # -- relations, from the catalog

    def _state(self, database: str | None) -> LakeState:
        # dbt quotes the name in some calls.
        name = parse_name(database)[-1] if database and database.startswith("`") else database
        with self.connections.exception_handler("metadata"):
            return self.session.state(name)

    def list_schemas(self, database: str) -> list[str]:
        return [schema.name for schema in self._state(database).schemas.values()]

    @available.parse(lambda *a, **k: False)
    def check_schema_exists(self, database: str, schema: str) -> bool:
        return self._state(database).find_schema(schema) is not None

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        state = self._state(schema_relation.database)
        schema = state.find_schema(schema_relation.schema or "")
        if schema is None:
            return []
        # Of a table and a function of one name, dbt keeps the first in mind.
        found = (*state.relations_in(schema), *state.macros_in(schema))
        return [self._as_relation(schema_relation.database, schema, thing) for thing in found]

    def _as_relation(self, database: str | None, schema: Schema, thing: Table | View | Macro) -> BaseRelation:
        return self.Relation.create(
            database=database or self.session.database,
            schema=schema.name,
            identifier=thing.name,
            type={Table: "table", View: "view", Macro: "function"}[type(thing)],
        )

    def _find(self, relation: BaseRelation) -> Table | View | None:
        if relation.schema is None:
            return None
        return self._state(relation.database).find(relation.schema, relation.identifier or "")

    @available.parse_list
    def get_columns_in_relation(self, relation: BaseRelation) -> list[DucklakeColumn]:
        found = None if relation.as_of else self._find(relation)
        if isinstance(found, Table):
            return [DucklakeColumn(c.name, query_type(c).simpleString()) for c in found.columns]
        if found is None and relation.schema is not None and not relation.as_of:
            return []
        # What a view gives is known when it is asked: its tables may have changed since.
        columns = self.session.columns(f"select * from {relation.render()}")
        return [DucklakeColumn(name, kind.simpleString()) for name, kind in columns]

    @available.parse_none
    def drop_relation(self, relation: BaseRelation) -> None:
        if relation.schema is None:
            self.session.spark.catalog.dropTempView(relation.identifier)
        else:
            super().drop_relation(relation)

    # -- the catalog of dbt docs

    def get_catalog(
        self, relation_configs: Iterable[RelationConfig], used_schemas: Collection[tuple[str, str]]
    ) -> tuple[agate.Table, list[Exception]]:
        wanted = {(database.lower(), schema.lower()) for database, schema in used_schemas}
        return self._catalog({d for d, _ in wanted}, lambda lake, schema, name: (lake, schema) in wanted)

    def get_catalog_by_relations(
        self, used_schemas: Collection[tuple[str, str]], relations: Collection[BaseRelation]
    ) -> tuple[agate.Table, list[Exception]]:
        wanted = {_key(r) for r in relations}
        return self._catalog({d for d, _, _ in wanted}, lambda *key: key in wanted)

    def get_filtered_catalog(
        self,
        relation_configs: Iterable[RelationConfig],
        used_schemas: frozenset[tuple[str, str]],
        relations: set[BaseRelation] | None = None,
    ) -> tuple[agate.Table, list[Exception]]:
        """The catalog of `dbt docs generate`, which has the lineage of snapshots beside it."""
        nodes = list(relation_configs)
        catalog, errors = super().get_filtered_catalog(nodes, used_schemas, relations)
        if command_of(self.config) == "generate":
            self._write_lineage(nodes, catalog)
        return catalog, errors

    def get_catalog_for_single_relation(self, relation: BaseRelation) -> CatalogTable | None:
        lake, wanted = self.session.lake(relation.database), _key(relation)[1:]
        found = docs.entries(lake, lambda schema, name: (schema.lower(), name.lower()) == wanted)
        return found[0].table() if found else None

    def _catalog(self, lakes: Collection[str], wanted: Any) -> tuple[agate.Table, list[Exception]]:
        found: list[docs.Entry] = []
        errors: list[Exception] = []
        for name in sorted(lakes):
            try:
                lake = self.session.lake(name)
                found += docs.entries(lake, lambda s, r, lake=name: wanted(lake, s.lower(), r.lower()))
            except LakeError as error:  # such as for a source that is in none of the lakes
                errors.append(error)
        return docs.as_agate(found), errors

    # -- freshness

    def calculate_freshness_from_metadata_batch(
        self, sources: list[BaseRelation], macro_resolver: Any = None
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, FreshnessResponse]]:
        answers: dict[BaseRelation, FreshnessResponse] = {}
        now = datetime.datetime.now(datetime.timezone.utc)
        for database in {s.database for s in sources}:
            some = [s for s in sources if s.database == database]
            written = self._last_writes(database, some)
            answers |= {s: self._create_freshness_response(written[s], now) for s in some if s in written}
        return [LakeResponse(_message="OK")], answers

    def calculate_freshness_from_metadata(
        self, source: BaseRelation, macro_resolver: Any = None
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        responses, answers = self.calculate_freshness_from_metadata_batch([source], macro_resolver)
        if source not in answers:
            raise DbtRuntimeError(
                f"{source.render()} is no table of a lake, so no snapshot tells when it changed; give its source a"
                " loaded_at_field, or check its database, schema and name"
            )
        return responses[0], answers[source]

    def _last_writes(self, database: str | None, sources: list[BaseRelation]) -> dict[BaseRelation, Any]:
        """When the rows of each source that is a table changed last."""
        lake = self.session.lake(database)
        with lake.catalog.read() as connection:
            base = lake.catalog.latest(connection)
            state = lake.snapshots.state(connection, base)
            found = {s: state.find(s.schema or "", s.identifier or "") for s in sources}
            tables = {s: t for s, t in found.items() if isinstance(t, Table)}
            facts = table_facts(connection, lake.catalog, base.id, [t.id for t in tables.values()])
            times = lake.catalog.times(connection, {f.last_write for f in facts.values() if f.last_write is not None})
        return {s: times.get(facts[t.id].last_write) for s, t in tables.items()}

    # -- what macros ask for

    @available
    @classmethod
    def quote(cls, identifier: str) -> str:
        return quoted(identifier)

    @available
    @classmethod
    def text_literal(cls, text: str) -> str:
        return string_literal(text)

    @available.parse(lambda *a, **k: "")
    def layout_clauses(self, config: Any) -> str:
        """PARTITIONED BY, SORTED BY and TBLPROPERTIES of a model."""
        return configs.layout_clauses(config)

    @available.parse_none
    def evolve_layout(self, relation: BaseRelation, config: Any, columns_to_come: bool = False) -> None:
        """Gives a table that is there the partition keys, sort keys and options of its model.

        Before its columns change, keys of columns that are still to come only take the old ones away, whose
        columns may go.
        """
        for statement, instead in configs.layout_changes(config, relation.render()):
            try:
                self.session.execute(statement)
            except (NotFoundError, SchemaChangeError):
                if not columns_to_come or instead is None:
                    raise
                self.session.execute(instead)

    @available.parse_list
    def key_columns(self, unique_key: Any, columns: Iterable[DucklakeColumn], relation: BaseRelation) -> list[str]:
        """The quoted columns that a unique_key names; an error if it names others."""
        return configs.named_columns("unique_key", unique_key, [c.name for c in columns], relation.render())

    @available.parse_list
    def updated_columns(self, update: Any, exclude: Any, columns: Iterable[DucklakeColumn]) -> list[str]:
        """The quoted columns that a merge updates; an error if one of the two settings names others."""
        return configs.updated_columns(update, exclude, [c.name for c in columns])

    @available
    def conditions(self, predicates: Any) -> list[str]:
        return configs.conditions(predicates)

    @available
    def merge_insert_conditions(self, config: Any) -> list[str]:
        return configs.merge_insert_conditions(config)

    @available.parse(lambda *a, **k: "")
    def partitions_condition(self, config: Any) -> str:
        return configs.partitions_condition(config)

    @available.parse_list
    def batch_conditions(self, model: Any, columns: Iterable[DucklakeColumn]) -> list[str]:
        """What holds for the rows of the window that a microbatch model replaces."""
        batch = model["batch"]
        types = {c.name: c.dtype for c in columns}
        return configs.batch_conditions(
            model["config"]["event_time"], types, batch["event_time_start"], batch["event_time_end"]
        )

    @available.parse_list
    def with_new_fields(
        self, source: Iterable[DucklakeColumn], target: Iterable[DucklakeColumn]
    ) -> list[DucklakeColumn]:
        """The target's columns in which the source has more fields, with those fields."""
        there = {c.name.lower(): c for c in target}
        pairs = [(there[c.name.lower()], c) for c in source if c.name.lower() in there]
        wider = [DucklakeColumn(old.name, with_new_fields(old.dtype, new.dtype)) for old, new in pairs]
        return [column for column, (old, _) in zip(wider, pairs, strict=True) if column.dtype != old.dtype]

    @available.parse_none
    def begin_node(self) -> None:
        """Begins the node's transaction, unless a hook did: what it reads from now on is of one snapshot."""
        if not self.connections.get_thread_connection().transaction_open:
            self.connections.begin()

    @available.parse_list
    def set_comments(self, relation: BaseRelation, comment: str | None, columns: Mapping[str, Any] | None) -> list[str]:
        """Puts descriptions into the lake, of the relation and its columns; the answer names columns it does not have.

        A column whose name is to be quoted is found by its exact name, as in dbt's own `validate_doc_columns`.
        """
        found = self._find(relation)
        if found is None:
            raise NotFoundError(f"there is no {relation.render()} to comment on")
        name, session = relation.render(), self.session
        kind = "table" if isinstance(found, Table) else "view"
        if comment and comment != found.comment:
            session.execute(f"comment on {kind} {name} is {string_literal(comment)}")
        there = {n.lower(): (n, known) for n, _, known in docs.columns_of(found, self._state(relation.database))}
        missing = []
        for key, column in (columns or {}).items():
            column_name, known = there.get(key.lower(), (None, None))
            text = column.get("description")
            if column_name is None or (column.get("quote") and column_name != key):
                missing.append(key)
            elif text and text != known:
                session.execute(f"comment on column {name}.{quoted(column_name)} is {string_literal(text)}")
        return missing

    @available.parse(lambda *a, **k: "")
    def python_query(self, model: Mapping[str, Any], code: str) -> str:
        """Runs a Python model; the query gives its rows."""
        handle = self._handle
        with handle.running():
            rows = python_models.dataframe_of(model["name"], code, self.session)
            view = handle.temporary_view(rows)
        return f"select * from {quoted(view)}"

    def submit_python_job(self, parsed_model: dict[str, Any], compiled_code: str) -> AdapterResponse:
        query = self.python_query(parsed_model, compiled_code)
        response, _ = self.execute(f"create or replace table {parsed_model['relation_name']} as {query}", True)
        return response

    @available.parse_none
    def load_seed(self, relation: BaseRelation, rows: agate.Table) -> LakeResponse:
        """Writes a seed's rows into its table, which is there; without Spark, if they are few and plain."""
        table = self._find(relation)
        assert isinstance(table, Table)
        handle = self._handle
        with self.connections.exception_handler(f"load seed {relation}"), handle.running():
            arrow = seeds.as_arrow(rows, table.columns)
            if arrow is not None:
                return handle.respond(self.session.insert(relation.render(), arrow))
            texts = self.session.spark.createDataFrame(seeds.as_texts(rows))
            view = handle.temporary_view(texts.toDF(*(c.name for c in table.columns)))
            casts = (f"cast({quoted(c.name)} as {query_type(c).simpleString()})" for c in table.columns)
            sql = f"insert into {relation.render()} select {', '.join(casts)} from {quoted(view)}"
            return handle.respond(self.session.execute(sql))

    def validate_sql(self, sql: str) -> AdapterResponse:
        """Has Spark analyse a query, without running it."""
        with self.connections.exception_handler(sql), self._handle.running():
            result: Result = self.session.execute(f"explain {sql}")
            return self._handle.respond(result)

    # -- the rest

    def debug_query(self) -> None:
        session = self.session
        catalog = session.lake().catalog
        with self.connections.exception_handler("dbt debug"):
            logger.info(f"  lake: format {FORMAT_VERSION} in {catalog.database.name}, files in {catalog.data_path}")
            spark = session.spark
            logger.info(f"  spark: {spark.version} at {session.spark_address}")
            if catalog.read_only:
                logger.info("  write: not tried, the lake is opened read-only")
                session.sql("select 1").collect()
                return
            session.prove_write()
            logger.info("  write: a row was written and read back, and taken away again")

    def valid_incremental_strategies(self) -> list[str]:
        return ["append", "merge", "delete+insert", "insert_overwrite", "microbatch"]

    @classmethod
    def _get_adapter_specific_run_info(cls, config: Any) -> dict[str, Any]:
        return {"adapter_type": "ducklake", "table_format": "ducklake", "adapter_version": version("dbt-ducklake")}


def _moments(config: Any) -> Moments:
    """As of when the run reads its sources, by `--vars` or the project's own."""
    own = config.credentials
    lakes = frozenset(str(name).lower() for name in (own.database, *(lake["name"] for lake in own.attach or ())))
    variables = {**getattr(getattr(config, "vars", None), "vars", {}), **(getattr(config, "cli_vars", None) or {})}
    return Moments(own.database.lower(), lakes, variables.get(AS_OF))


def _key(relation: BaseRelation) -> tuple[str, str, str]:
    return (relation.database or "").lower(), (relation.schema or "").lower(), (relation.identifier or "").lower()
