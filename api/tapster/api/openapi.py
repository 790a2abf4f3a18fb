"""The OpenAPI document, generated from the route tables that also answer the requests."""

import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

from tapster.engine.ecma import Json

OPENAPI_VERSION: Final = "3.1.0"
_ID = re.compile(r":([A-Za-z]+)")


@attrs.frozen
class Operation:
    """One operation as the document shows it; ``path`` has ``:id`` segments."""

    method: str
    path: str
    summary: str
    tag: str
    success: int = 200
    takes_body: bool = False
    takes_bytes: bool = False
    needs_token: bool = False
    media_type: str = "application/json"


def openapi_document(operations: Iterable[Operation], version: str) -> dict[str, Json]:
    """The document of all operations."""
    paths: dict[str, dict[str, Json]] = {}
    for operation in operations:
        path = _ID.sub(r"{\1}", operation.path)
        paths.setdefault(path, {})[operation.method.lower()] = _operation(operation)
    return {
        "openapi": OPENAPI_VERSION,
        "info": {
            "title": "Tapster",
            "version": version,
            "description": "The tavern runtime for agent hosts: the contract's routes and Tapster's own.",
        },
        "paths": paths,
        "components": {
            "schemas": {"Error": _error_schema(), "ContractError": _contract_error_schema()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(operation: Operation) -> dict[str, Json]:
    value: dict[str, Json] = {
        "summary": operation.summary,
        "tags": [operation.tag],
        "operationId": _operation_id(operation),
        "parameters": [_parameter(name) for name in _ID.findall(operation.path)],
        "responses": {
            str(operation.success): {"description": "done", "content": {operation.media_type: {}}},
            "default": {"description": "refused", "content": {"application/json": {"schema": _error_ref(operation)}}},
        },
    }
    if operation.takes_body:
        types = (
            ("application/json", "application/octet-stream", "image/png")
            if operation.takes_bytes
            else ("application/json",)
        )
        value["requestBody"] = {"content": {name: {"schema": _body_schema(name)} for name in types}}
    if operation.needs_token:
        value["security"] = [{}, {"token": []}]
    return value


def _operation_id(operation: Operation) -> str:
    words = re.findall(r"[A-Za-z0-9]+", operation.path)
    return "_".join([operation.method.lower(), *words])


def _parameter(name: str) -> dict[str, Json]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _body_schema(media_type: str) -> dict[str, Json]:
    return {"type": "object"} if media_type == "application/json" else {"type": "string", "format": "binary"}


def _error_ref(operation: Operation) -> Mapping[str, Json]:
    name = "Error" if operation.needs_token else "ContractError"
    return {"$ref": f"#/components/schemas/{name}"}


def _error_schema() -> dict[str, Json]:
    members = {"code": {"type": "string"}, "message": {"type": "string"}, "details": {"type": "object"}}
    return {"type": "object", "required": ["code", "message", "details"], "properties": members}


def _contract_error_schema() -> dict[str, Json]:
    error = {"anyOf": [{"type": "string"}, {"type": "object"}]}
    members = {"ok": {"const": False}, "error": error, "code": {"type": "string"}}
    return {"type": "object", "required": ["ok", "error"], "properties": members}
