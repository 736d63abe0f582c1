"""What counts besides rows, and how it is compared later: functions, definitions of relations, Spark's session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..lake.snapshot import Macro, Table, View
from ..spark.inputs import Input
from ..spark.session import LakeSession
from .recipe import digest


def find_relation(session: LakeSession, name: str) -> tuple[str, Table | View | None]:
    """The lake and the relation of a dotted name. None if it, or its lake, is not there."""
    lake, schema, relation = name.split(".", 2)
    if lake.lower() not in {attached.name.lower() for attached in session.lakes}:
        return lake, None
    return lake, session.state(lake).find_relation(schema, relation)


def function_digests(functions: Mapping[str, Macro]) -> dict[str, str]:
    return {name: digest(macro.impls) for name, macro in functions.items()}


def changed_function(session: LakeSession, digests: Mapping[str, str]) -> str | None:
    """A function that is another than it was, or gone."""
    for name, was in digests.items():
        lake, schema, function = name.split(".", 2)
        macro = session.state(lake).find_macro(schema, function)
        if macro is None or digest(macro.impls) != was:
            return name
    return None


def session_digest(session: LakeSession) -> str:
    """What hooks before the nodes have set in Spark's session; empty if nothing."""
    return digest("\n".join(session.session_settings)) if session.session_settings else ""


def definition_digests(session: LakeSession, inputs: Sequence[Input]) -> dict[str, str]:
    found = {read.name: find_relation(session, read.name)[1] for read in inputs}
    return {name: definition_digest(relation) for name, relation in found.items() if relation is not None}


def definition_digest(relation: Table | View) -> str:
    if isinstance(relation, View):
        return digest((relation.dialect, relation.sql, relation.column_aliases))
    return digest(relation.columns)
