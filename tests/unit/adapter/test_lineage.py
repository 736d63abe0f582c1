"""Snapshot lineage: read from the catalog alone, shown as a table, as JSON and as a page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dbt.adapters.ducklake.history import lineage, lineage_report
from dbt.adapters.ducklake.lake.commit.staged import CommitInfo
from dbt.adapters.ducklake.spark.read.lakes import Lake as NamedLake

from ...lakes import Lake, LakeAddress, columns


def extra_info(node: str, **inputs: tuple[int, int]) -> str:
    """Returns extra info as dbt writes it: the node, and the table id and the snapshot of each input."""
    read = [{"relation": f"lake.main.{n}", "table_id": i, "snapshot": s} for n, (i, s) in inputs.items()]
    return json.dumps({"node_id": f"model.shop.{node}", "inputs": read, "rows": {"inserted": 1}})


class Shop:
    """A lake in which a table `top` is built from a table `base`."""

    def __init__(self, address: LakeAddress) -> None:
        self.lake = Lake(address)
        self.named = NamedLake.open("lake", address.catalog, address.data_path)

    def put(self, name: str, extra_info: str | None = None, **info: Any) -> int:
        """Commits a new version of a table."""
        tx = self.lake.begin()
        tx.commit_info = CommitInfo(info.get("author"), info.get("message"), extra_info)
        table = tx.state.find_relation("main", name) or tx.create_table(
            tx.state.schema("main"), name, columns(id="int64")
        )
        tx.append(table, [self.lake.file(tx, table, {"id": [1]})])
        return tx.commit().snapshot.id

    def lineage(self) -> lineage.Lineage:
        return lineage.read_lineage([self.named])


@pytest.fixture
def shop(new_lake: Callable[[str], LakeAddress]) -> Iterator[Shop]:
    shop = Shop(new_lake("sqlite"))
    yield shop
    shop.named.catalog.close()


def table_id(shop: Shop, name: str) -> int:
    return shop.lake.table(name).id


def test_a_version_is_stale_when_its_input_moved_on(shop: Shop) -> None:
    first = shop.put("base", extra_info("base"))
    top = shop.put("top", extra_info("top", base=(table_id(shop, "base"), first)))
    assert list(shop.lineage().stale_inputs()) == []
    second = shop.put("base", extra_info("base"))
    assert list(shop.lineage().stale_inputs()) == [
        lineage.StaleInput("lake.main.top", top, "lake.main.base", first, second)
    ]
    shop.put("top", extra_info("top", base=(table_id(shop, "base"), second), top=(table_id(shop, "top"), top)))
    found = shop.lineage()
    assert list(found.stale_inputs()) == [], "nothing is stale by what it was itself"
    assert [v.id for v in found.versions_by_relation["lake.main.top"]] == [top, second + 1]


def test_renamed_tables_are_followed(shop: Shop) -> None:
    first = shop.put("base")
    shop.put("top", extra_info("top", base=(table_id(shop, "base"), first)))
    with shop.lake.transaction() as tx:
        tx.rename(tx.state.table("main", "base"), tx.state.schema("main"), "ground")
    found = shop.lineage()
    assert found.versions_by_relation["lake.main.top"][0].inputs == (lineage.InputVersion("lake.main.ground", first),)
    assert "lake.main.base" not in found.versions_by_relation


def test_a_compaction_is_no_version(shop: Shop) -> None:
    shop.put("base")
    shop.put("base")
    with shop.lake.duckdb() as duckdb:
        duckdb.execute("call ducklake_merge_adjacent_files('lake')")
    assert [v.id for v in shop.lineage().versions_by_relation["lake.main.base"]] == [1, 2]


def test_extra_info_of_other_writers_gives_no_inputs(shop: Shop) -> None:
    others = ("not json", "[1]", '{"inputs": 3}', '{"inputs": [{"relation": "x"}, 7]}', "", None)
    for words in (*others, '{"nodes": [{"changed": 3}]}', '{"nodes": [{"changed": ["x"], "inputs": []}, 7]}'):
        shop.put("base", words)
    versions = shop.lineage().versions_by_relation["lake.main.base"]
    assert len(versions) == len(others) + 2
    assert all(v.inputs == () for v in versions)


def test_what_a_run_changed_is_a_version_of_its_node_or_of_a_hook(shop: Shop) -> None:
    shop.put("base")
    shop.put("top")
    base = table_id(shop, "base")
    nodes = [
        {"node_id": "model.shop.base", "message": "base", "changed": [base], "inputs": []},
        {"node_id": "model.shop.top", "message": "top", "changed": [], "inputs": []},
    ]
    run = shop.put("base", json.dumps({"nodes": nodes}), message="dbt build: 2 nodes")
    by_hook = shop.put("top", json.dumps({"nodes": nodes[1:]}), message="dbt build: 1 node")
    found = shop.lineage().versions
    assert [(v.message, v.changed) for v in found if v.id == run] == [("base", ("lake.main.base",)), ("top", ())]
    assert [(v.message, v.changed) for v in found if v.id == by_hook] == [
        ("top", ()),
        ("dbt build: 1 node", ("lake.main.top",)),
    ]


def test_the_history_of_a_relation_is_a_table_for_the_terminal(shop: Shop) -> None:
    first = shop.put("base")
    shop.put(
        "top", extra_info("top", base=(table_id(shop, "base"), first)), author="me", message="dbt run: top (table)"
    )
    shop.put("base")
    name, head, _, line = lineage_report.version_history(shop.lineage(), "LAKE.main.Top").splitlines()
    assert name == "lake.main.top"
    assert head.split("  ")[0] == "snapshot"
    assert line.split()[0] == "2"
    assert line.endswith("me      dbt run: top (table)  current  lake.main.base@1 (now 3)")
    assert "There is no lake.main.nothing" in lineage_report.version_history(shop.lineage(), "lake.main.nothing")
    for _ in range(30):
        shop.put("base")
    assert lineage_report.version_history(shop.lineage(), "lake.main.base").endswith("... and 12 older ones")


def test_the_json_joins_snapshots_with_the_nodes_of_dbt(shop: Shop, tmp_path: Path) -> None:
    first = shop.put("base")
    shop.put("top", extra_info("top", base=(table_id(shop, "base"), first)), message="</script><b>&")
    shop.put("unknown")
    with shop.lake.transaction() as tx:
        tx.drop(tx.state.table("main", "unknown"))
    place = {"database": "lake", "schema": "main"}
    nodes = [
        lineage_report.DbtNode.from_config(
            SimpleNamespace(
                **place, identifier="TOP", name="top", resource_type="model", unique_id="model.shop.top", version=2
            )
        ),
        lineage_report.DbtNode.from_config(
            SimpleNamespace(
                **place,
                identifier="base",
                name="b",
                source_name="it's",
                resource_type="source",
                unique_id="source.shop.b",
            )
        ),
    ]
    content = lineage_report.lineage_json(shop.lineage(), nodes, {"lake.main.top": 7}, {}, "shop", "dev")
    base, top, unknown = content["relations"]
    assert (base["macro"], base["node_id"]) == ("source(\"it's\", 'b')", "source.shop.b")
    assert (top["macro"], top["rows"], top["sql_name"]) == ("ref('top', v=2)", 7, "`lake`.`main`.`top`")
    assert (unknown["gone"], unknown["node_id"]) == (True, None)
    assert [s["changed"] for s in content["snapshots"]][1:3] == [["lake.main.base"], ["lake.main.top"]]
    lineage_report.write_lineage(content, tmp_path)
    assert json.loads((tmp_path / "snapshot_lineage.json").read_text()) == content
    page = (tmp_path / "snapshot_lineage.html").read_text()
    assert "</script><b>" not in page
    given = page.partition('id="lineage">')[2].partition("</script>")[0]
    assert json.loads(given) == content
