"""The variables document of a session: its parts, filled in where they are missing.

Source: spec/text_and_mvu C1.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, TypeAlias

from .errors import MvuError
from .schema import derive_schema
from .values import check_value

Json: TypeAlias = Any
SchemaCheck: TypeAlias = Callable[[Json], Json]
"""A declared schema: ``stat_data`` in, the transformed one out; raises ``MVU_SCHEMA``."""
BOOKKEEPING = ("schema", "initialized_lorebooks", "display_data", "delta_data", "mvu_schema", "update_diagnostics")


def normalize_variables(variables: Json) -> dict[str, Json]:
    """A variables document with every part.

    Raises:
        MvuError: ``MVU_SCHEMA`` when ``stat_data`` is no object; ``MVU_JSON``, ``MVU_LIMIT``, ``MVU_PATH``.
    """
    if not isinstance(variables, Mapping):
        raise MvuError("MVU_SCHEMA", "the variables are no object")
    check_value(variables)
    stat_data = variables.get("stat_data", {})
    if not isinstance(stat_data, Mapping):
        raise MvuError("MVU_SCHEMA", "stat_data must be an object")
    clean, schema = derive_schema(deepcopy(stat_data), variables.get("schema"))
    return {
        **variables,
        "stat_data": clean,
        "schema": schema,
        "initialized_lorebooks": variables.get("initialized_lorebooks", {}),
        "display_data": variables.get("display_data", deepcopy(clean)),
        "delta_data": variables.get("delta_data", {}),
    }
