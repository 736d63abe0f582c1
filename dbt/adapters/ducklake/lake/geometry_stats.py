"""Statistics of geometries, as `extra_stats` of the catalog has them: a bounding box and the kinds of shapes.

The reference prunes by the box of a table, in which it reads numbers without a fraction as zero. It takes a table
without `extra_stats` for one without values, whose box the next insert sets alone. So unknown bounds are the widest
ones, and never absent.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any

_AXES = ("x", "y", "z", "m")
_BOUNDS = tuple(f"{axis}{end}" for axis in _AXES for end in ("min", "max"))
_SHAPES = {
    1: "point",
    2: "linestring",
    3: "polygon",
    4: "multipoint",
    5: "multilinestring",
    6: "multipolygon",
    7: "geometrycollection",
}
_DIMENSIONS = {0: "", 1: "_z", 2: "_m", 3: "_zm"}
_TYPES = {
    1000 * dimension + shape: name + suffix
    for dimension, suffix in _DIMENSIONS.items()
    for shape, name in _SHAPES.items()
}
"""The names of the types, by their codes in ISO WKB and in Parquet."""


@dataclass(frozen=True)
class GeometryStats:
    """The lowest and highest coordinates of some geometries, in the order of `_BOUNDS`, and their types.

    A bound is None if no value has a coordinate on its axis.
    """

    bounds: tuple[float | None, ...]
    types: frozenset[str]

    def union(self, other: GeometryStats) -> GeometryStats:
        """The statistics of both together."""
        pairs = zip(_BOUNDS, self.bounds, other.bounds, strict=True)
        bounds = tuple(_outer(a, b, lower=name.endswith("min")) for name, a, b in pairs)
        return GeometryStats(bounds, self.types | other.types)

    def text(self) -> str:
        """The text in the catalog, as the reference writes it."""
        box = ", ".join(f'"{name}": {_number(bound)}' for name, bound in zip(_BOUNDS, self.bounds, strict=True))
        types = ", ".join(f'"{name}"' for name in sorted(self.types))
        return f'{{"bbox": {{{box}}}, "types": [{types}]}}'


NO_GEOMETRIES = GeometryStats((None,) * len(_BOUNDS), frozenset())
ANY_GEOMETRIES = GeometryStats((-sys.float_info.max, sys.float_info.max) * len(_AXES), frozenset(_TYPES.values()))
"""The statistics of unknown values."""


def parse_geometry_stats(text: str | None) -> GeometryStats:
    """The statistics of a text in the catalog. A text that does not tell them stands for any geometries."""
    try:
        found = json.loads(text or "")
        bounds = tuple(None if found["bbox"][name] is None else float(found["bbox"][name]) for name in _BOUNDS)
        return GeometryStats(bounds, frozenset(map(str, found["types"])))
    except (ValueError, KeyError, TypeError):
        return ANY_GEOMETRIES


def chunk_geometry_stats(chunk: Any, value_count: int | None) -> GeometryStats:
    """The statistics of a column chunk of a Parquet file.

    Writers leave them out where no value has coordinates, and where they could not compute them.
    """
    if value_count == 0:
        return NO_GEOMETRIES
    found = getattr(chunk, "geo_statistics", None)  # older versions of pyarrow do not read them
    codes = found.geospatial_types if found is not None else None
    if found is None or found.xmin is None or not codes or not set(codes) <= _TYPES.keys():
        return ANY_GEOMETRIES
    # On the globe a box may span the date line, with its least longitude above its greatest.
    if found.xmin > found.xmax:
        return ANY_GEOMETRIES
    return GeometryStats(tuple(getattr(found, name) for name in _BOUNDS), frozenset(_TYPES[code] for code in codes))


def _outer(a: float | None, b: float | None, lower: bool) -> float | None:
    if a is None or b is None:
        return b if a is None else a
    return min(a, b) if lower else max(a, b)


def _number(bound: float | None) -> str:
    """A number with a fraction or an exponent, exactly."""
    if bound is None:
        return "null"
    short = f"{bound:.6f}"
    return short if len(short) < 20 and float(short) == bound else repr(bound)
