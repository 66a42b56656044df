"""The OpenAPI 3.1 document, built from `calls` and the models that validate and type the calls. Pure.

Not left to Litestar's generator: it knows neither raw routes nor bodies that are read without it.
"""

from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from typing import Any

from pydantic import TypeAdapter

from reserve.errors import ReserveError
from reserve.web import examples
from reserve.web.call import Call, QueryParameter, Success
from reserve.web.calls import CALLS
from reserve.web.fields import Body
from reserve.web.problems import INTERNAL_ERROR, PROBLEMS, document

_SCHEMAS = "#/components/schemas/"
_PROBLEM = {
    "type": "object",
    "description": "A problem document (RFC 9457). Which further members it has depends on `code`.",
    "required": ["type", "title", "status", "detail", "code", "instance"],
    "properties": {
        "type": {"type": "string", "format": "uri-reference", "description": "Ends in `code`."},
        "title": {"type": "string"},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "description": "What is wrong with this request, for people."},
        "code": {"type": "string", "enum": [*(error.code for error in PROBLEMS), INTERNAL_ERROR]},
        "instance": {"type": "string", "format": "uri-reference", "description": "Path of the request."},
        "errors": {
            "type": "array",
            "description": "Of `validation-failed`: every fault, with a JSON pointer into the body.",
            "items": {
                "type": "object",
                "required": ["pointer", "detail"],
                "properties": {"pointer": {"type": "string"}, "detail": {"type": "string"}},
            },
        },
        "shortfalls": {
            "type": "array",
            "description": "Of `insufficient-stock`: every pool that has too little, in line order.",
            "items": {
                "type": "object",
                "required": ["pool", "requested", "available"],
                "properties": {
                    "pool": {"type": "string"},
                    "requested": {"type": "integer"},
                    "available": {"type": "integer"},
                },
            },
        },
        "pools": {
            "type": "array",
            "description": "Of `pool-not-found` and `pool-draining`: every pool meant.",
            "items": {"type": "string"},
        },
        "on_hand": {"type": "integer", "description": "Of `below-promised` and `on-hand-mismatch`."},
        "available": {"type": "integer", "description": "Of `below-promised`."},
        "promised": {"type": "integer", "description": "Of `below-promised`."},
    },
}
_HEADERS: dict[str, dict[str, object]] = {
    "ETag": {"description": 'The version as an entity tag, such as `"3"`.', "schema": {"type": "string"}},
    "Location": {"description": "Path of what was made.", "schema": {"type": "string", "format": "uri-reference"}},
    "Idempotent-Replayed": {
        "description": "`true` when this is the stored answer to an earlier request with the same key.",
        "schema": {"type": "string", "const": "true"},
    },
    "Retry-After": {"description": "Seconds after which to try again.", "schema": {"type": "integer"}},
}
#: What an open part of a path is, by the part before it.
_PATH_PARTS: dict[str, dict[str, object]] = {
    "pools": {"description": "Key of the pool, percent-encoded.", "schema": {"type": "string"}},
    "holds": {"description": "Id of the hold.", "schema": {"type": "string", "format": "uuid"}},
    "lanes": {"description": "Name of the lane, percent-encoded.", "schema": {"type": "string"}},
    "jobs": {"description": "Id of the job.", "schema": {"type": "integer", "minimum": 1}},
    "problems": {"description": "Code of the problem.", "schema": {"type": "string"}},
}
_DESCRIPTION = """\
Reserve stock without overselling, and have jobs done.

Every refusal is a problem document (`application/problem+json`); its `type` leads to its meaning.
Of several things wrong with a request, the first answers: idempotency key present, body readable,
body valid, key reused or replayed, pool or job known, pool open or lease held, stock.

Unknown JSON fields, duplicate JSON names and unknown query parameters are refused. `HEAD` works where
`GET` does. An unknown address is `not-found`, a wrong method `method-not-allowed` with `Allow`.
Pool keys and names of lanes are percent-encoded in paths: the pool `a/b` is `/v1/pools/a%2Fb`.
Every answer carries the `X-Request-Id` of its request, or a new one.
"""


def openapi_document() -> dict[str, Any]:
    """The document as plain JSON."""
    paths: dict[str, dict[str, Any]] = {}
    for call in CALLS:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "reserve",
            "version": _version(),
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": _schemas(),
            "headers": _HEADERS,
            "examples": {
                error.code: {"summary": PROBLEMS[type(error)].title, "value": document(error, instance)}
                for error, instance in examples.ERRORS
            },
        },
    }


def _version() -> str:
    try:
        return version("reserve")
    except PackageNotFoundError:
        return "0"  # run from a checkout that is not installed


def schema_name(model: type) -> str:
    """How the document calls a shape or a body: `HoldShape` is `Hold`."""
    return model.__name__.removesuffix("Shape")


def _schemas() -> dict[str, Any]:
    """Schemas of all bodies and shapes, with whatever those refer to."""
    models: dict[type, TypeAdapter[Any]] = {}
    for call in CALLS:
        models |= {success.shape: TypeAdapter(success.shape) for success in call.successes}
        if call.body is not None:
            models[call.body] = TypeAdapter(call.body)
    _, generated = TypeAdapter.json_schemas(
        [
            (model, "serialization" if not issubclass(model, Body) else "validation", adapter)
            for model, adapter in models.items()
        ],
        ref_template=_SCHEMAS + "{model}",
    )
    schemas: dict[str, Any] = _renamed(generated["$defs"])
    return schemas | {"Problem": _PROBLEM}


def _renamed(value: Any) -> Any:
    """The generated schemas under the names of the document, in keys, titles and references alike."""
    match value:
        case dict():
            return {key.removesuffix("Shape"): _renamed(member) for key, member in value.items()}
        case list():
            return [_renamed(member) for member in value]
        case str():
            return value.removesuffix("Shape")
        case _:
            return value


def _operation(call: Call) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": call.answer.__name__,
        "tags": [call.tag],
        "summary": call.summary,
        "description": call.description,
        "parameters": _parameters(call),
        "responses": {str(success.status): _success(success) for success in call.successes} | _problems(call.errors),
    }
    if call.body is not None:
        operation["requestBody"] = {
            "required": not call.body_optional,
            "content": {
                "application/json": {
                    "schema": {"$ref": _SCHEMAS + schema_name(call.body)},
                    "examples": {"example": {"value": call.body_example}},
                }
            },
        }
    return operation


def _success(success: Success) -> dict[str, Any]:
    return {
        "description": success.description,
        "headers": {name: {"$ref": f"#/components/headers/{name}"} for name in success.headers},
        "content": {
            "application/json": {
                "schema": {"$ref": _SCHEMAS + schema_name(success.shape)},
                "examples": {"example": {"value": success.example}},
            }
        },
    }


def _problems(errors: tuple[type[ReserveError], ...]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for error in errors:
        kind = PROBLEMS[error]
        response = responses.setdefault(
            str(kind.status),
            {
                "description": "",
                "content": {"application/problem+json": {"schema": {"$ref": _SCHEMAS + "Problem"}, "examples": {}}},
            },
        )
        shown = response["content"]["application/problem+json"]["examples"]
        shown[error.code] = {"$ref": f"#/components/examples/{error.code}"}
        response["description"] = " · ".join(f"`{code}`" for code in shown)
        if kind.retry_after_seconds is not None:
            response["headers"] = {"Retry-After": {"$ref": "#/components/headers/Retry-After"}}
    return responses


def _parameters(call: Call) -> list[dict[str, Any]]:
    parameters = _path_parameters(call.path)
    parameters += [_query_parameter(parameter) for parameter in call.query]
    if call.idempotency_key is not None:
        required = call.idempotency_key == "required"
        parameters.append(
            _header_parameter(
                "Idempotency-Key",
                "1 to 255 printable ASCII characters, bare or as a quoted string. A retry with the same key "
                "and request gets the first answer, byte for byte."
                + (" A setting makes it optional." if required else ""),
                required=required,
            )
        )
    if call.if_match:
        parameters.append(
            _header_parameter("If-Match", 'Change only this version, such as `"3"`; `*` for any.', required=False)
        )
    parameters.append(_header_parameter("X-Request-Id", "Names this request in answers and logs.", required=False))
    return parameters


def _path_parameters(path: str) -> list[dict[str, Any]]:
    """The open parts of a path, each described by what it stands behind."""
    parts = path.split("/")
    return [
        {"name": part[1:-1], "in": "path", "required": True, **_PATH_PARTS[before]}
        for before, part in pairwise(parts)
        if part.startswith("{")
    ]


def _query_parameter(parameter: QueryParameter) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer", "minimum": 1} if parameter.integer else {"type": "string"}
    if parameter.values:
        schema["enum"] = list(parameter.values)
    if parameter.repeats:
        schema = {"type": "array", "items": schema}
    return {"name": parameter.name, "in": "query", "description": parameter.description, "schema": schema}


def _header_parameter(name: str, description: str, *, required: bool) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": required,
        "description": description,
        "schema": {"type": "string"},
    }
