"""The extra info of commits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def parse_extra_info(text: str | None) -> Mapping[str, Any]:
    """The extra info of any commit. Empty for text of other writers that is not a JSON object."""
    try:
        extra_info = json.loads(text or "{}")
    except ValueError:
        return {}
    return extra_info if isinstance(extra_info, Mapping) else {}
