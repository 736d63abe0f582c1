"""Lineages to show, and the page that shows them: what `dbt docs generate` writes, built in a line."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from dbt.adapters.ducklake.history.lineage_page import lineage_page

START = datetime(2026, 11, 18, 8, tzinfo=timezone.utc)


class Lineage:
    """A lake as the page is told of it: each `snapshot` is one more, some minutes after the one before."""

    def __init__(self, lake: str = "lake") -> None:
        self.lake = lake
        self.relations: list[dict[str, Any]] = []
        self.snapshots: list[dict[str, Any]] = []

    def full(self, name: str) -> str:
        return f"{self.lake}.{name}" if "." in name else f"{self.lake}.main.{name}"

    def relation(self, name: str, resource_type: str | None = "model", **facts: Any) -> None:
        macro = f"source('shop', '{name}')" if resource_type == "source" else f"ref('{name}')"
        node = f"source.shop.shop.{name}" if resource_type == "source" else f"{resource_type}.shop.{name}"
        self.relations.append(
            {
                "name": self.full(name),
                "type": "table",
                "node_id": node if resource_type else None,
                "resource_type": resource_type,
                "sql_name": ".".join(f"`{part}`" for part in self.full(name).split(".", 2)),
                "macro": macro if resource_type else None,
                "rows": 1000,
                "gone": False,
                **facts,
            }
        )

    def snapshot(self, *changed: str, inputs: dict[str, int] | None = None, **facts: Any) -> int:
        """By a dbt node of the first relation's name; `node_id=None` is somebody who is not dbt."""
        number = len(self.snapshots) + 1
        name = changed[0] if changed else "nothing"
        self.snapshots.append(
            {
                "id": number,
                "lake": self.lake,
                "time": (START + timedelta(minutes=10 * number)).isoformat(),
                "author": "me",
                "message": f"dbt run: {name} (table)",
                "node_id": f"model.shop.{name}",
                "invocation_id": "7e1a3c52-8d0f-4f2b-9c55-0a8f3a1b2c3d",
                "rows": {"inserted": 10, "updated": 0, "deleted": 0},
                "changed": [self.full(name) for name in changed],
                "inputs": [{"relation": self.full(read), "snapshot": at} for read, at in (inputs or {}).items()],
                **facts,
            }
        )
        return number

    def data(self) -> dict[str, Any]:
        return {
            "format": 1,
            "generated_at": "2026-11-19T02:00:00+00:00",
            "project": "shop",
            "target": "dev",
            "lakes": [{"name": self.lake, "snapshot": len(self.snapshots)}],
            "relations": self.relations,
            "snapshots": self.snapshots,
        }


def shop() -> dict[str, Any]:
    """Two sources, staging and marts. Orders came again after `customers` was built: `customers` alone is stale."""
    lake = Lineage()
    for name in ("raw_orders", "raw_payments"):
        lake.relation(name, "source")
    lake.relation("countries", "seed", rows=249)
    for name in ("stg_orders", "stg_payments", "customers", "revenue"):
        lake.relation(name)
    lake.relation("recent", type="view", rows=None)
    lake.relation("old_report", gone=True, rows=None)
    by_loader = {"author": "loader", "message": None, "node_id": None, "invocation_id": None}

    lake.snapshot("raw_orders", **by_loader, rows={"inserted": 120_000, "updated": 0, "deleted": 0})  # 1
    lake.snapshot("raw_payments", **by_loader)  # 2
    lake.snapshot("countries", node_id="seed.shop.countries", message="dbt seed: countries")  # 3
    lake.snapshot("stg_orders", inputs={"raw_orders": 1})  # 4
    lake.snapshot("stg_payments", inputs={"raw_payments": 2})  # 5
    lake.snapshot("old_report", inputs={"stg_orders": 4})  # 6
    lake.snapshot("customers", inputs={"stg_orders": 4, "countries": 3})  # 7
    lake.snapshot("revenue", inputs={"stg_orders": 4, "stg_payments": 5})  # 8
    lake.snapshot("recent", inputs={"stg_orders": 4}, message="dbt run: recent (view)", rows=None)  # 9
    lake.snapshot("raw_orders", **by_loader, rows={"inserted": 900, "updated": 30, "deleted": 4})  # 10
    lake.snapshot("stg_orders", inputs={"raw_orders": 10}, author="ci")  # 11
    lake.snapshot(
        "revenue",  # 12: an incremental model, which reads what it adds to
        inputs={"stg_orders": 11, "stg_payments": 5, "revenue": 8},
        author="ci",
        message="dbt run: revenue (incremental, merge)",
        rows={"inserted": 900, "updated": 34, "deleted": 0},
    )
    return lake.data()


def big(relations: int = 500, snapshots: int = 10_000, inputs: int = 5) -> dict[str, Any]:
    """A project that has run for months. The same each time: the dice are loaded."""
    dice = random.Random(7)
    lake = Lineage()
    names = [f"{'raw' if n < 60 else 'mart_of_something_long'}_{n:03}" for n in range(relations)]
    newest: dict[str, int] = {}
    minutes = 0.0
    for n, name in enumerate(names):
        lake.relation(name, "source" if n < 60 else "model")
    for n in range(snapshots):
        at = n if n < relations else dice.randrange(relations)
        read = dice.sample(range(at), min(at, inputs)) if at >= 60 else []
        minutes += dice.randrange(60, 2000) if n % 80 == 0 else dice.choice([0.2, 0.5, 1.4])
        newest[names[at]] = lake.snapshot(
            names[at],
            inputs={names[r]: newest[names[r]] for r in read},
            author=dice.choice(["nightly", "nightly", "nightly", "ci", "ada", "grace"]),
            time=(START + timedelta(minutes=minutes)).isoformat(),
            rows={"inserted": dice.randrange(10**6), "updated": dice.randrange(900), "deleted": dice.randrange(50)},
        )
    return lake.data()


def project(relations: int = 1000, schemas: bool = True) -> dict[str, Any]:
    """A project of 25 areas: sources, staging views, intermediate models and marts, which read mostly their area."""
    dice = random.Random(11)
    lake = Lineage()
    layers = ("raw", "stg", "int", "mart")
    built: dict[str, list[str]] = {layer: [] for layer in layers}
    newest: dict[str, int] = {}
    for n in range(relations):
        layer = layers[4 * n // relations]
        name = f"{layer if schemas else 'main'}.{layer}_{n:04}"
        inputs: set[str] = set()
        if layer != "raw":
            before = built[layers[layers.index(layer) - 1]]
            own = [other for other in before if int(other[-4:]) % 25 == n % 25] or before
            inputs.update([dice.choice(own)] if layer == "stg" else dice.sample(own, min(len(own), 1 + n % 3)))
            if n % 17 == 0:
                inputs.add(dice.choice(before))
            if layer == "mart" and n % 3 == 0:
                inputs.update(built["mart"][:1])
        lake.relation(name, "source" if layer == "raw" else "model", type="view" if layer == "stg" else "table")
        newest[name] = lake.snapshot(name, inputs={other: newest[other] for other in sorted(inputs)})
        built[layer].append(name)
    for name in dice.sample(built["int"], relations // 50):
        lake.snapshot(name)
    return lake.data()


def dag(relations: int = 40, edges: int = 90, seed: int = 3) -> dict[str, Any]:
    """A random graph: each edge goes from one relation to any later one."""
    dice = random.Random(seed)
    lake = Lineage()
    pairs: set[tuple[int, int]] = set()
    while len(pairs) < edges:
        left, right = sorted(dice.sample(range(relations), 2))
        pairs.add((left, right))
    for n in range(relations):
        lake.relation(f"t{n}" + "_with_a_long_name" * dice.randrange(2))
    names = [relation["name"].rpartition(".")[2] for relation in lake.relations]
    for n, name in enumerate(names):
        lake.snapshot(name, inputs={names[left]: left + 1 for left, right in sorted(pairs) if right == n})
    for name in dice.sample(names, 4):
        lake.snapshot(name)
    return lake.data()


def write(folder: Path, data: object) -> Path:
    """The page with that lineage in it, as the adapter writes it."""
    path = folder / "snapshot_lineage.html"
    path.write_text(lineage_page(json.dumps(data, ensure_ascii=False)), encoding="utf-8")
    return path
