"""The adapter: what dbt and macros may call. The work is done by the modules beside this one."""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

import agate
from dbt.adapters.base.impl import ConstraintSupport, FreshnessResponse
from dbt.adapters.base.meta import available
from dbt.adapters.base.relation import BaseRelation
from dbt.adapters.capability import Capability, CapabilityDict, CapabilitySupport, Support
from dbt.adapters.contracts.connection import AdapterResponse, ConnectionState
from dbt.adapters.contracts.relation import RelationConfig, RelationType
from dbt.adapters.events.logging import AdapterLogger
from dbt_common.clients.agate_helper import empty_table
from dbt_common.contracts.constraints import ConstraintType
from dbt_common.contracts.metadata import CatalogTable
from dbt_common.exceptions import DbtRuntimeError
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from . import docs, incremental, python_models, seeds
from .column import DucklakeColumn
from .comments import comment_changes
from .configs import DucklakeConfig, check_model_config
from .connection_handle import PASSED_TEST, CommitContext, LakeResponse
from .freshness import last_write_times
from .history.methods import HistoryMethods
from .history.node_commit import NodeCommit, dbt_command, default_message
from .lake.errors import LakeError, NotFoundError, SchemaChangeError
from .lake.snapshot import Macro, Schema, Table, View
from .lake.types import Column
from .maintenance import MIN_SECONDS, MaintenanceSettings, describe
from .other_adapters import IgnoredSettings, PackageConfig
from .progress import at_terminal, progress_log
from .publish.preview import preview_text
from .publish.publication import Publication
from .relation import DucklakeRelation
from .reuse.data_tests import ReusedTests
from .reuse.nodes import ReusedNodes
from .reuse.run import Run
from .reuse.settings import is_configured
from .spark.engine.errors import first_line
from .spark.sql.definitions import with_new_fields
from .spark.sql.quoting import quoted, string_literal
from .spark.sql.types import query_type
from .table_layout import TableLayout
from .text_table import text_table
from .time_travel import SourceTimeTravel

logger = AdapterLogger("DuckLake")

_SPARK_COMMANDS = frozenset(("build", "run", "test", "snapshot", "show", "retry", "clone"))
"""The dbt commands that start Spark while dbt still parses the project."""

_RELATION_TYPES = {Table: RelationType.Table, View: RelationType.View, Macro: RelationType.Function}


class DucklakeAdapter(HistoryMethods):
    AdapterSpecificConfigs: TypeAlias = DucklakeConfig

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
        self.Relation = DucklakeRelation.with_source_time_travel(SourceTimeTravel.from_config(config))
        self._ignored_settings = IgnoredSettings()
        self._publication = Publication(config, lambda: self.session, self.get_macro_resolver)
        progress_log.enabled = at_terminal(config)
        run = Run.of(config, lambda: self.session, self.get_macro_resolver)
        self._reused_nodes, self._reused_tests = ReusedNodes(run), ReusedTests(run)
        if dbt_command(config) in _SPARK_COMMANDS and hasattr(config, "args") and not is_configured(config):
            self.connections.start_spark()

    # -- nodes

    @contextmanager
    def connection_named(
        self, name: str, query_header_context: Any = None, should_release_connection: bool = True
    ) -> Iterator[None]:
        node = query_header_context
        node_commit = NodeCommit(node, self.config) if hasattr(node, "resource_type") else None
        with (
            self.connections.commit_context(CommitContext(node_commit, default_message(self.config, name))),
            super().connection_named(name, query_header_context, should_release_connection),
        ):
            if name == "master" and self._publication.must_begin:
                with self.connections.exception_handler("publish: run"):
                    self._publication.begin()
            yield
            if name == "master":
                with self.connections.exception_handler("publish: run"):
                    self._publication.end_of_connection()

    def cancel_open_connections(self) -> Iterable[str]:
        self._publication.cancel()
        cancelled: Iterable[str] = super().cancel_open_connections()
        return cancelled

    def pre_model_hook(self, config: Any) -> None:
        settings = self._settings(config)
        check_model_config(settings)
        if isinstance(settings, PackageConfig) and settings.ignored:
            self._ignored_settings.add(config.model.package_name, config.model.unique_id, settings.ignored)

    def post_model_hook(self, config: Any, context: Any) -> None:
        """Maintains the table of a node that has committed, if that is set, which never fails the node."""
        connection = self.connections.get_if_exists()
        if connection is None or connection.state != ConnectionState.OPEN:
            return
        if connection.handle.after_test is not None and self.session.in_transaction:
            with self.connections.exception_handler("reuse"):
                connection.handle.after_test()
        setting = config.get("maintenance")
        settings = MaintenanceSettings.parse(self.config.credentials.maintenance if setting is None else setting)
        if settings is None:
            return
        node = config.model
        if self._publication.is_running:
            self._publication.follow_up(node.unique_id, lambda: self._maintain(node, settings))
        elif connection.handle.committed_snapshot is not None and not self.session.in_transaction:
            self._maintain(node, settings)

    def _maintain(self, node: Any, settings: MaintenanceSettings) -> None:
        budget = self.connections.maintenance_budget
        seconds = budget.remaining_seconds(settings)
        if seconds < MIN_SECONDS:
            return
        name = self.Relation.create(schema=node.schema, identifier=node.alias).include(database=False).render()
        start = time.monotonic()
        try:
            with self.handle.cancellable(), self.handle.cancelled_after(seconds):
                rows = self.session.call(
                    "ducklake_maintain", node.database, name, max_seconds=seconds, **settings.arguments()
                )
            for line in describe(rows.to_pylist()):
                logger.info(f"Maintained {line}")
        except NotFoundError:
            logger.debug(f"{name} is no table of a lake, and needs no maintenance")
        except (LakeError, PySparkException, Py4JError) as error:
            logger.warning(f"Maintenance of {name} was left for the next run: {first_line(error)}")
        finally:
            budget.spend(time.monotonic() - start)

    @available.parse_none
    def reused(self, config: Any, code: str | None) -> LakeResponse | None:
        """The response of a node that need not be computed; None if it is to be computed."""
        with self.connections.exception_handler("reuse"), self.session.reading():
            return self._reused_nodes.response(config.model, code, self.handle)

    @available.parse(lambda *a, **k: False)
    def is_passed_test(self, config: Any) -> bool:
        """Whether a data test is known to pass."""
        with self.connections.exception_handler("reuse"), self.session.reading():
            self.handle.passed_test = self._reused_tests.why_passed(config.model, self.handle)
        return self.handle.passed_test is not None

    @available
    @classmethod
    def passed_test_query(cls) -> str:
        return PASSED_TEST

    @available.parse(lambda *a, **k: "")
    def plan_report(self) -> str:
        """Which nodes would be computed, and why, as a table of text."""
        with self.connections.exception_handler("ducklake_plan"), self.session.reading():
            rows = [(name, "computed" if why else "reused", why) for name, why in self._reused_nodes.plan()]
        computed = sum(1 for row in rows if row[2])
        return f"{computed} of {len(rows)} nodes would be computed\n{text_table(('node', 'outcome', 'why'), rows)}"

    @available.parse(lambda *a, **k: "")
    def preview_report(self) -> str:
        """What the last run that was to be one snapshot changed or would have changed, as a table of text."""
        return preview_text(Path(self.config.project_target_path))

    @available
    @classmethod
    def no_rows(cls) -> agate.Table:
        return empty_table()

    def _settings(self, config: Any) -> Any:
        """The settings of a model. For one of an installed package, without those that are for other adapters."""
        package = getattr(getattr(config, "model", None), "package_name", self.config.project_name)
        return config if package == self.config.project_name else PackageConfig.read(config)

    def cleanup_connections(self) -> None:
        self._publication.end(failed=sys.exc_info()[0] is not None)
        self._reused_tests.write(self._publication.snapshot)
        super().cleanup_connections()
        if (warning := self._ignored_settings.take_warning()) is not None:
            logger.warning(warning)

    # -- relations, from the catalog

    def list_schemas(self, database: str) -> list[str]:
        return [schema.name for schema in self.lake_state(database).schemas.values()]

    @available.parse(lambda *a, **k: False)
    def check_schema_exists(self, database: str, schema: str) -> bool:
        return self.lake_state(database).find_schema(schema) is not None

    def list_relations_without_caching(self, schema_relation: BaseRelation) -> list[BaseRelation]:
        state = self.lake_state(schema_relation.database)
        schema = state.find_schema(schema_relation.schema or "")
        if schema is None:
            return []
        # Tables and views first: where a function has the same name, dbt caches only the first relation.
        found: tuple[Table | View | Macro, ...] = (*state.relations_in(schema), *state.macros_in(schema))
        return [self._as_relation(schema_relation.database, schema, entry) for entry in found]

    def _as_relation(self, database: str | None, schema: Schema, entry: Table | View | Macro) -> BaseRelation:
        return self.Relation.create(
            database=database or self.session.database,
            schema=schema.name,
            identifier=entry.name,
            type=_RELATION_TYPES[type(entry)],
        )

    @available.parse_list
    def get_columns_in_relation(self, relation: BaseRelation) -> list[DucklakeColumn]:
        is_time_travel = isinstance(relation, DucklakeRelation) and relation.as_of is not None
        found = None if is_time_travel else self.find_table_or_view(relation)
        if isinstance(found, Table):
            return [DucklakeColumn(c.name, query_type(c).simpleString()) for c in found.columns]
        if found is None and relation.schema is not None and not is_time_travel:
            return []
        # A view has the columns that its query has now: its tables may have changed since it was created.
        columns = self.session.query_columns(f"select * from {relation.render()}")
        return [DucklakeColumn(name, type_.simpleString()) for name, type_ in columns]

    @available.parse_none
    def drop_relation(self, relation: BaseRelation) -> None:
        if not relation.schema:
            # A bare name is a temporary view, or a table that a package created by it in the current schema.
            dropped = self.session.spark.catalog.dropTempView(relation.identifier or "")
            if dropped or not relation.is_table:
                return
        super().drop_relation(relation)

    # -- the catalog of dbt docs

    def get_catalog(
        self, relation_configs: Iterable[RelationConfig], used_schemas: Collection[tuple[str, str]]
    ) -> tuple[agate.Table, list[Exception]]:
        schemas = {(database.lower(), schema.lower()) for database, schema in used_schemas}
        return self._catalog({lake for lake, _ in schemas}, lambda lake, schema, _: (lake, schema) in schemas)

    def get_catalog_by_relations(
        self, used_schemas: Collection[tuple[str, str]], relations: Collection[BaseRelation]
    ) -> tuple[agate.Table, list[Exception]]:
        names = {_lower_name(relation) for relation in relations}
        return self._catalog({lake for lake, _, _ in names}, lambda *name: name in names)

    def get_filtered_catalog(
        self,
        relation_configs: Iterable[RelationConfig],
        used_schemas: frozenset[tuple[str, str]],
        relations: set[BaseRelation] | None = None,
    ) -> tuple[agate.Table, list[Exception]]:
        """The relations for catalog.json. `dbt docs generate` also writes the snapshot lineage."""
        nodes = list(relation_configs)
        catalog, errors = super().get_filtered_catalog(nodes, used_schemas, relations)
        if dbt_command(self.config) == "generate":
            self.write_lineage_files(nodes, catalog)
        return catalog, errors

    def get_catalog_for_single_relation(self, relation: BaseRelation) -> CatalogTable | None:
        lake, schema_and_name = self.session.lake(relation.database), _lower_name(relation)[1:]
        found = docs.catalog_relations(lake, lambda schema, name: (schema.lower(), name.lower()) == schema_and_name)
        return found[0].as_catalog_table() if found else None

    def _catalog(
        self, lakes: Collection[str], included: Callable[[str, str, str], bool]
    ) -> tuple[agate.Table, list[Exception]]:
        """The relations of which `included` is true for the lake, schema and name, all in lower case."""
        found: list[docs.CatalogRelation] = []
        errors: list[Exception] = []
        for lake_name in sorted(lakes):

            def in_lake(schema: str, name: str, lake_name: str = lake_name) -> bool:
                return included(lake_name, schema.lower(), name.lower())

            try:
                found += docs.catalog_relations(self.session.lake(lake_name), in_lake)
            except LakeError as error:  # such as for a source that is in none of the lakes
                errors.append(error)
        return docs.as_agate(found), errors

    # -- freshness

    def calculate_freshness_from_metadata_batch(
        self, sources: list[BaseRelation], macro_resolver: Any = None
    ) -> tuple[list[AdapterResponse | None], dict[BaseRelation, FreshnessResponse]]:
        responses: dict[BaseRelation, FreshnessResponse] = {}
        now = datetime.datetime.now(datetime.timezone.utc)
        for database in {source.database for source in sources}:
            names = {s: (s.schema or "", s.identifier or "") for s in sources if s.database == database}
            times = last_write_times(self.session.lake(database), names.values())
            for source, name in names.items():
                if name in times:
                    responses[source] = self._create_freshness_response(times[name], now)
        return [LakeResponse(_message="OK")], responses

    def calculate_freshness_from_metadata(
        self, source: BaseRelation, macro_resolver: Any = None
    ) -> tuple[AdapterResponse | None, FreshnessResponse]:
        adapter_responses, freshness = self.calculate_freshness_from_metadata_batch([source], macro_resolver)
        if source not in freshness:
            raise DbtRuntimeError(
                f"{source.render()} is no table of a lake, so no snapshot tells when it changed; give its source a"
                " loaded_at_field, or check its database, schema and name"
            )
        return adapter_responses[0], freshness[source]

    # -- names and literals

    @available
    @classmethod
    def quote(cls, identifier: str) -> str:
        return quoted(identifier)

    @available
    @classmethod
    def string_literal(cls, text: str) -> str:
        return string_literal(text)

    # -- table layout: partition keys, sort keys, options

    @available.parse(lambda *a, **k: "")
    def layout_clauses(self, config: Any) -> str:
        """PARTITIONED BY, SORTED BY and TBLPROPERTIES of a model, for CREATE TABLE."""
        return TableLayout.from_config(self._settings(config)).create_clauses()

    @available.parse_none
    def evolve_layout(self, relation: BaseRelation, config: Any, before_schema_change: bool = False) -> None:
        """Gives an existing table the layout of its model.

        Before a schema change the model's keys may name columns that the table does not have yet. Then only the old
        keys are removed, so that the schema change may drop their columns.
        """
        for change in TableLayout.from_config(self._settings(config)).changes(relation.render()):
            try:
                self.session.execute(change.statement)
            except (NotFoundError, SchemaChangeError):
                if not before_schema_change or change.fallback is None:
                    raise
                self.session.execute(change.fallback)

    # -- incremental strategies

    def valid_incremental_strategies(self) -> list[str]:
        return list(incremental.STRATEGIES)

    @available
    def incremental_strategy(self, config: Any) -> str:
        return incremental.strategy_of(config)

    @available.parse_list
    def key_columns(self, unique_key: Any, columns: Iterable[DucklakeColumn], relation: BaseRelation) -> list[str]:
        """The columns of a unique_key, quoted."""
        return incremental.quoted_columns("unique_key", unique_key, [c.name for c in columns], relation.render())

    @available.parse_list
    def merge_update_columns(self, update: Any, exclude: Any, columns: Iterable[DucklakeColumn]) -> list[str]:
        return incremental.merge_update_columns(update, exclude, [c.name for c in columns])

    @available
    def predicate_list(self, predicates: Any) -> list[str]:
        return incremental.predicate_list(predicates)

    @available
    def merge_insert_conditions(self, config: Any) -> list[str]:
        return incremental.merge_insert_conditions(config)

    @available.parse(lambda *a, **k: "")
    def partitions_condition(self, config: Any) -> str:
        return incremental.partitions_condition(self._settings(config))

    @available.parse_list
    def microbatch_conditions(self, model: Any, columns: Iterable[DucklakeColumn]) -> list[str]:
        batch = model["batch"]
        types = {c.name: c.dtype for c in columns}
        return incremental.microbatch_conditions(
            model["config"]["event_time"], types, batch["event_time_start"], batch["event_time_end"]
        )

    @available.parse_list
    def columns_with_new_fields(
        self, source: Iterable[DucklakeColumn], target: Iterable[DucklakeColumn]
    ) -> list[DucklakeColumn]:
        """The target's struct columns that lack fields of the source, with the types that have them."""
        target_columns = {c.name.lower(): c for c in target}
        changed = []
        for new in source:
            old = target_columns.get(new.name.lower())
            if old is not None and (type_ := with_new_fields(old.dtype, new.dtype)) != old.dtype:
                changed.append(DucklakeColumn(old.name, type_))
        return changed

    # -- comments

    @available.parse_list
    def set_comments(self, relation: BaseRelation, comment: str | None, columns: Mapping[str, Any] | None) -> list[str]:
        """Sets the comments of a relation and its columns. Returns the described columns that it does not have."""
        found = self.find_table_or_view(relation)
        if found is None:
            raise NotFoundError(f"there is no {relation.render()} to comment on")
        existing_columns = docs.catalog_columns(found, self.lake_state(relation.database))
        changes = comment_changes(relation.render(), found, existing_columns, comment, columns or {})
        for statement in changes.statements:
            self.session.execute(statement)
        return list(changes.missing_columns)

    # -- Python models and seeds

    @available.parse(lambda *a, **k: "")
    def python_model_query(self, model: Mapping[str, Any], code: str) -> str:
        """Runs a Python model. Returns the query that reads its rows."""
        with self.handle.cancellable():
            source = python_models.ModelSource.of(model, self._package_folder(model.get("package_name")))
            rows = python_models.run_python_model(source, code, self.session)
            view = self.handle.temporary_view(rows)
        return f"select * from {quoted(view)}"

    def _package_folder(self, package: str | None) -> Path:
        """The folder of the project, or of an installed package."""
        root = Path(self.config.project_root)
        is_root = package in (None, self.config.project_name)
        return root if is_root else root / self.config.packages_install_path / str(package)

    def submit_python_job(self, parsed_model: dict[str, Any], compiled_code: str) -> AdapterResponse:
        query = self.python_model_query(parsed_model, compiled_code)
        response: AdapterResponse
        response, _ = self.execute(f"create or replace table {parsed_model['relation_name']} as {query}", True)
        return response

    @available.parse_none
    def load_seed(self, relation: BaseRelation, rows: agate.Table) -> LakeResponse:
        """Inserts a seed's rows into its existing table. Few rows of plain values are written without Spark."""
        table = self.find_table_or_view(relation)
        assert isinstance(table, Table)
        with self.connections.exception_handler(f"load seed {relation}"), self.handle.cancellable():
            arrow = seeds.as_arrow(rows, table.columns)
            if arrow is not None:
                return self.handle.response_to(self.session.insert(relation.render(), arrow))
            texts = self.session.spark.createDataFrame(seeds.as_text_columns(rows))
            view = self.handle.temporary_view(texts.toDF(*(c.name for c in table.columns)))
            values = (_seed_value_sql(c) for c in table.columns)
            sql = f"insert into {relation.render()} select {', '.join(values)} from {quoted(view)}"
            return self.handle.response_to(self.session.execute(sql))

    # -- the rest

    def validate_sql(self, sql: str) -> AdapterResponse:
        """Has Spark analyze a query without running it."""
        with self.connections.exception_handler(sql), self.handle.cancellable():
            return self.handle.response_to(self.session.execute(f"explain {sql}"))

    def debug_query(self) -> None:
        session = self.session
        catalog = session.lake().catalog
        with self.connections.exception_handler("dbt debug"):
            logger.info(
                f"  lake: format {catalog.format.name} in {catalog.database.name}, files in {catalog.data_path}"
            )
            spark = session.spark
            logger.info(f"  spark: {spark.version} at {session.spark_address}")
            if catalog.read_only:
                logger.info("  write: not tried, the lake is opened read-only")
                session.sql("select 1").collect()
                return
            session.check_writable()
            logger.info("  write: a row was written and read back, and taken away again")

    @available.parse(lambda *a, **k: "")
    def stop_spark(self) -> str:
        """Stops the Spark that `spark.keep_alive` keeps for the profile. Returns what to print."""
        with self.connections.exception_handler("ducklake_stop_spark"):
            stopped = self.session.stop_warm_spark()
        return "Stopped Spark" if stopped else "No Spark was kept alive for this profile"

    @available.parse(lambda *a, **k: "")
    def migrate(self, to_version: str | None, dry_run: bool) -> str:
        """Brings the lake of the profile to a later format version. Returns what to print."""
        with self.connections.exception_handler("ducklake_migrate"):
            migration = self.connections.migrate(None if to_version is None else str(to_version), dry_run)
        if not migration.changes:
            return f"The lake in {migration.location} has format version {migration.to_version} already"
        verb = "would be" if dry_run else "was"
        lines = [
            f"The lake in {migration.location} {verb} migrated from {migration.from_version} to {migration.to_version}:"
        ]
        return "\n".join([*lines, *(f"  {change}" for change in migration.changes)])

    @available.parse(lambda *a, **k: "")
    def call_procedure(
        self,
        procedure: str,
        relation: DucklakeRelation | None,
        schema: str | None,
        arguments: Mapping[str, Any],
        as_json: bool = False,
    ) -> str:
        """Calls a procedure that maintains the lake. Returns its rows to print: as a table, or as JSON."""
        scope: dict[str, Any] = {"schema": schema} if schema is not None else {}
        lake = []
        if relation is not None:
            lake, scope = [relation.database], {"table_name": relation.include(database=False).render()}
        given = {name: value for name, value in arguments.items() if value is not None}
        if self._publication.is_running:
            self._publication.follow_up(None, lambda: logger.info(self._called(procedure, lake, {**scope, **given})))
            return f"{procedure} follows when the run is published"
        return self._called(procedure, lake, {**scope, **given}, as_json)

    def _called(
        self, procedure: str, lake: Sequence[str | None], arguments: Mapping[str, Any], as_json: bool = False
    ) -> str:
        with self.connections.exception_handler(procedure), self.handle.cancellable():
            rows = self.session.call(procedure, *lake, **arguments)
        if as_json:
            return json.dumps(rows.to_pylist(), indent=2, default=str)
        if not rows.num_rows:
            return f"{procedure}: nothing to do"
        shown = {name: values for name, values in rows.to_pydict().items() if any(v is not None for v in values)}
        columns = [["" if value is None else str(value) for value in values] for values in shown.values()]
        return text_table(list(shown), list(zip(*columns, strict=True)))

    @classmethod
    def _get_adapter_specific_run_info(cls, config: Any) -> dict[str, Any]:
        return {"adapter_type": "ducklake", "table_format": "ducklake", "adapter_version": version("dbt-ducklake")}


def _lower_name(relation: BaseRelation) -> tuple[str, str, str]:
    return (relation.database or "").lower(), (relation.schema or "").lower(), (relation.identifier or "").lower()


def _seed_value_sql(column: Column) -> str:
    """The Spark SQL for a seed's value, from its text. That of a geometry is WKT, which the write converts."""
    name = quoted(column.name)
    return name if column.type == "geometry" else f"cast({name} as {query_type(column).simpleString()})"
