"""The kinds of field that request bodies share, each with the sentence that refuses a wrong value; pure.

Bounds that are settings come in as the validation context, which is always a `Settings`.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    ValidationInfo,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from reserve.names import KEY_LENGTH_MAX, normalise_key
from reserve.settings import QUANTITY_MAX, Settings
from reserve.web.answers import encode

#: No object of a request has nearly as many fields, so this only bounds the work of refusing a hostile one.
_FIELDS_MAX = 50

_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt][0-9:]{8}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})\Z")
_NOT_SERVED = "is not served by this version: leave it out, or send null"


def refusal(detail: str) -> PydanticCustomError:
    """A fault whose sentence is `detail` as it stands."""
    return PydanticCustomError("refused", "{detail}", {"detail": detail})


def settings_of(info: ValidationInfo) -> Settings:
    settings = info.context
    assert isinstance(settings, Settings), "bodies are validated with the settings as context"
    return settings


class Body(BaseModel):
    """An object of a request: nothing is coerced, and unknown fields are refused."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, data: Any) -> Any:
        if isinstance(data, dict) and len(data) > _FIELDS_MAX:
            raise refusal(f"has {len(data)} fields, which is more than there are")
        return data


def whole(
    low: int, high: Callable[[Settings], int], *, schema_high: int | None = None, refused: int | None = None
) -> tuple[BeforeValidator, WithJsonSchema]:
    """A whole number from `low` to `high`, but not `refused`; 1.0, "1" and true are none."""

    def check(value: Any, info: ValidationInfo) -> Any:
        bound = high(settings_of(info))
        least = -bound if low < 0 else low
        if type(value) is not int or not least <= value <= bound or value == refused:
            other = "" if refused is None else f" other than {refused}"
            raise refusal(f"must be a whole number from {least} to {bound}{other}")
        return value

    schema: dict[str, Any] = {"type": "integer", "minimum": low}
    if schema_high is not None:
        schema["maximum"] = schema_high
    if refused is not None:
        schema["not"] = {"const": refused}
    return BeforeValidator(check), WithJsonSchema(schema)


def _key(text: str) -> str:
    try:
        return normalise_key(text)
    except ValueError as error:
        raise refusal(str(error)) from None


def _metadata(value: dict[str, Any], info: ValidationInfo) -> dict[str, Any]:
    _few_bytes(value, settings_of(info).metadata_bytes_max)
    return value


def _few_bytes(value: Any, bytes_max: int) -> Any:
    try:
        size = len(encode(value))
    except ValueError:
        # A number beyond a double, which has its own fault with its own pointer already.
        return value
    if size > bytes_max:
        raise refusal(f"must have at most {bytes_max} bytes as compact JSON, has {size}")
    return value


def _null_only(value: Any) -> None:
    if value is not None:
        raise refusal(_NOT_SERVED)


def only(served: Any, sentence: str) -> tuple[BeforeValidator, WithJsonSchema]:
    """A field that has one value in this version; `sentence` refuses every other."""

    def check(value: Any) -> Any:
        # By type too: 0 equals False, but is another value in JSON.
        if type(value) is not type(served) or value != served:
            raise refusal(sentence)
        return value

    return BeforeValidator(check), WithJsonSchema({"const": served})


def number(high: Callable[[Settings], float]) -> tuple[BeforeValidator, WithJsonSchema]:
    """A number from 0 to `high`, whole or not; "1" and true are none."""

    def check(value: Any, info: ValidationInfo) -> Any:
        bound = high(settings_of(info))
        if type(value) not in {int, float} or not 0 <= value <= bound:
            raise refusal(f"must be a number from 0 to {bound:.15g}")
        return float(value)

    return BeforeValidator(check), WithJsonSchema({"type": "number", "minimum": 0})


def _moment(value: Any) -> datetime:
    """A time with its offset; without one, either reading would be a guess."""
    if isinstance(value, str) and _MOMENT.match(value):
        try:
            # In UTC here already: at both ends of what a `datetime` can say, an offset leads out of it.
            return datetime.fromisoformat(value.upper()).astimezone(UTC)
        except (ValueError, OverflowError):
            pass
    raise refusal("must be a time with its offset from UTC in RFC 3339, such as '2026-01-05T10:00:00Z'")


def _json(value: Any, info: ValidationInfo) -> Any:
    return _few_bytes(value, settings_of(info).job_payload_bytes_max)


def without_defaults(schema: dict[str, Any]) -> None:
    """For a change, of which an absent field keeps its value.

    A default in the schema would read as what an absent field becomes, and make generated clients send it.
    """
    for field in schema["properties"].values():
        field.pop("default", None)


_KEY_SCHEMA = WithJsonSchema({"type": "string", "minLength": 1, "maxLength": KEY_LENGTH_MAX})

Quantity = Annotated[int, *whole(1, lambda settings: settings.quantity_max, schema_high=QUANTITY_MAX)]
QuantityOrZero = Annotated[int, *whole(0, lambda settings: settings.quantity_max, schema_high=QUANTITY_MAX)]
Delta = Annotated[
    int, *whole(-QUANTITY_MAX, lambda settings: settings.quantity_max, schema_high=QUANTITY_MAX, refused=0)
]
TtlSeconds = Annotated[int, *whole(1, lambda settings: settings.hold_lifetime_seconds_max)]
KeyText = Annotated[str, AfterValidator(_key), _KEY_SCHEMA]
Metadata = Annotated[
    dict[str, Any],
    AfterValidator(_metadata),
    WithJsonSchema({"type": "object", "additionalProperties": True}),
]
NotServed = Annotated[None, BeforeValidator(_null_only), WithJsonSchema({"type": "null"})]
Moment = Annotated[datetime, BeforeValidator(_moment), WithJsonSchema({"type": "string", "format": "date-time"})]
#: What JSON can say, null included, in the bound of a job's payload.
JsonValue = Annotated[Any, AfterValidator(_json), WithJsonSchema({})]
