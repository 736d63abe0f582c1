"""The function that runs each statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from ..change.command_context import CommandContext
from ..change.delete import delete
from ..change.insert import insert
from ..change.merge import merge
from ..change.update import update
from ..read.context import QueryContext
from ..sql import statements as st
from .alter import alter
from .comments import comment_on
from .functions import create_function, drop_function
from .procedures import call
from .restore import restore
from .schemas import create_schema, drop_schema
from .show import SHOW_COMMANDS
from .table_descriptions import TABLE_DESCRIPTIONS
from .tables import create_table, create_table_like, drop, truncate
from .views import create_view

COMMANDS: Mapping[type, Callable[[CommandContext, Any], int]] = {
    st.CreateSchema: create_schema,
    st.DropSchema: drop_schema,
    st.CreateTable: create_table,
    st.CreateTableLike: create_table_like,
    st.CreateView: create_view,
    st.Drop: drop,
    st.CreateFunction: create_function,
    st.DropFunction: drop_function,
    st.Truncate: truncate,
    st.Insert: insert,
    st.Delete: delete,
    st.Update: update,
    st.Merge: merge,
    st.Alter: alter,
    st.CommentOn: comment_on,
    st.Call: call,
    st.Restore: restore,
}
"""The statements that change a lake. Each function returns the number of rows affected."""

CATALOG_COMMANDS: Mapping[type, Callable[[QueryContext, Any], pa.Table]] = {**SHOW_COMMANDS, **TABLE_DESCRIPTIONS}
"""The statements that the catalog answers. Each function returns rows."""
