"""Errors for names that a lake does not have, with the names that the author may have meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from .errors import NotFoundError

if TYPE_CHECKING:
    from .snapshot import LakeState

_MAX_NAMES = 10
"""An error lists no more names than these."""


def nearest_names(name: str, names: Iterable[str]) -> list[str]:
    """The names that differ from a name by a few letters, the nearest first.

    >>> nearest_names("ordrs", ["orders", "Order", "customers"])
    ['orders', 'Order']
    """
    spelled = {n.lower(): n for n in sorted(names)}
    return [spelled[n] for n in difflib.get_close_matches(name.lower(), spelled, n=3)]


def relation_not_found(state: LakeState, schema_name: str, name: str, place: str = "") -> NotFoundError:
    """The error for a table or view that a lake does not have. `place` says where it was looked for."""
    schema = state.find_schema(schema_name)
    hint = did_you_mean_relation(state, schema_name, name)
    if schema is None:
        missing = f"there is no table or view {schema_name}.{name}{place}, and no schema {schema_name}"
        return NotFoundError(f"{missing}; {hint or _schemas(state)}")
    if not hint and state.relations_in(schema):
        hint = f"SHOW TABLES IN {schema.name} lists what there is"
    return NotFoundError(
        f"there is no table or view {schema.name}.{name}{place}; {hint or f'schema {schema.name} is empty'}"
    )


def did_you_mean_relation(state: LakeState, schema_name: str, name: str) -> str | None:
    """The question that names similar relations of the schema, and those of the same name in other schemas."""
    schema = state.find_schema(schema_name)
    same_name = sorted(state.qualified_name(r) for r in state.find_relations_named(name))
    if schema is not None:
        here = nearest_names(name, (r.name for r in state.relations_in(schema)))
        return _did_you_mean([f"{schema.name}.{n}" for n in here] + same_name)
    return _did_you_mean(same_name or nearest_names(schema_name, (s.name for s in state.schemas.values())))


def function_not_found(state: LakeState, schema_name: str, name: str, place: str = "") -> NotFoundError:
    qualified = {f"{state.schemas[m.schema_id].name}.{m.name}": m.name for m in state.macros.values()}
    near = nearest_names(name, qualified.values())
    hint = _did_you_mean(sorted(q for q, n in qualified.items() if n in near))
    return NotFoundError(f"there is no function {schema_name}.{name}{place}{f'; {hint}' if hint else ''}")


def schema_not_found(state: LakeState, name: str, place: str = "") -> NotFoundError:
    near = nearest_names(name, (s.name for s in state.schemas.values()))
    return NotFoundError(f"there is no schema {name}{place}; {_did_you_mean(near) or _schemas(state)}")


def lake_not_found(name: str, lakes: Iterable[str]) -> NotFoundError:
    """The error for a lake that is not attached."""
    names = sorted(lakes)
    hint = _did_you_mean(nearest_names(name, names)) or "attach it first, in dbt with attach in the profile"
    return NotFoundError(f"there is no lake {name} (the lakes here: {_listed(names)}); {hint}")


def _schemas(state: LakeState) -> str:
    return f"the lake's schemas are {_listed(sorted(s.name for s in state.schemas.values()))}"


def _listed(names: list[str]) -> str:
    more = [f"and {len(names) - _MAX_NAMES} more"] if len(names) > _MAX_NAMES else []
    return ", ".join([*names[:_MAX_NAMES], *more])


def _did_you_mean(names: list[str]) -> str | None:
    if not names:
        return None
    *others, last = names[:_MAX_NAMES]
    return f"did you mean {', '.join(others)} or {last}?" if others else f"did you mean {last}?"
