"""What each call accepts as its body, and how it reads in the inventory's words. For bounds see `fields`."""

from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo

from reserve.errors import Fault, ValidationFailed
from reserve.inventory.rows import Adjust, Line, Place, PoolChange, PoolKind, sum_lines
from reserve.settings import Settings
from reserve.unset import UNSET
from reserve.web.body import QUOTE_LENGTH_MAX, pointer_token
from reserve.web.fields import (
    Body,
    Delta,
    KeyText,
    Metadata,
    NotServed,
    Quantity,
    QuantityOrZero,
    TtlSeconds,
    only,
    refusal,
    settings_of,
    without_defaults,
)

BodyType = TypeVar("BodyType", bound=Body)

#: Faults listed in one answer; what is wrong beyond that is counted.
FAULTS_MAX = 100

#: Sentences for what pydantic finds by itself; everything else brings its own.
_SENTENCES = {
    "missing": "is required",
    "extra_forbidden": "is not a known field",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be an array",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
}


class PoolBody(Body):
    """Body of `PUT /v1/pools/{key}`: what is absent keeps its value."""

    model_config = ConfigDict(json_schema_extra=without_defaults)

    kind: Annotated[
        Literal["stock"], *only("stock", "must be 'stock': only 'stock' pools are served by this version")
    ] = Field("stock", description="What the pool counts; fixed once it exists.")
    on_hand: QuantityOrZero = Field(0, description="Units that exist; only when the pool is made, then adjust it.")
    buffer: QuantityOrZero = Field(0, description="Units that are kept back from every hold.")
    hold_ttl_seconds: TtlSeconds | None = Field(
        None,
        description="Time to live of a hold that names none; null for the setting. At most the lifetime cap.",
    )
    max_per_owner: NotServed = Field(None, description="Not served by this version: null.")
    late_confirm: Annotated[
        Literal["refuse"], *only("refuse", "must be 'refuse': other values are not served by this version")
    ] = Field("refuse", description="What happens to a confirm after the hold lapsed.")
    window: NotServed = Field(None, description="Not served by this version: null.")
    limit: NotServed = Field(None, description="Not served by this version: null.")
    metadata: Metadata = Field(default_factory=dict, description="Yours; replaced as a whole.")

    def change(self) -> PoolChange:
        """The fields that were sent, in the inventory's words."""
        sent = self.model_fields_set
        return PoolChange(
            kind=PoolKind(self.kind) if "kind" in sent else UNSET,
            on_hand=self.on_hand if "on_hand" in sent else UNSET,
            buffer=self.buffer if "buffer" in sent else UNSET,
            hold_ttl_seconds=self.hold_ttl_seconds if "hold_ttl_seconds" in sent else UNSET,
            metadata=self.metadata if "metadata" in sent else UNSET,
        )


class AdjustmentBody(Body):
    """Body of `POST /v1/pools/{key}/adjustments`."""

    delta: Delta = Field(description="How much `on_hand` changes; not 0.")
    reason: KeyText = Field(description="Why, for whoever reads the ledger.")
    expected_on_hand: QuantityOrZero | None = Field(None, description="Adjust only if `on_hand` is this now.")
    allow_shortage: bool = Field(
        default=False,
        description="Let it reach into what is promised; the pool is short until that is made up.",
    )

    def adjust(self) -> Adjust:
        return Adjust(self.delta, self.reason, self.expected_on_hand, self.allow_shortage)


class LineBody(Body):
    pool: KeyText = Field(description="Key of the pool.")
    quantity: Quantity = Field(description="Units to hold, at least 1.")


def _few_lines(value: Any, info: ValidationInfo) -> Any:
    lines_max = settings_of(info).hold_lines_max
    if isinstance(value, list) and not 1 <= len(value) <= lines_max:
        raise refusal(f"must have 1 to {lines_max} lines, has {len(value)}")
    return value


def _within_sums(lines: list[LineBody], info: ValidationInfo) -> list[LineBody]:
    """The same pool may stand on several lines, but together they are one quantity, with one bound."""
    quantity_max = settings_of(info).quantity_max
    for line in sum_lines([Line(line.pool, line.quantity) for line in lines]):
        if line.quantity > quantity_max:
            raise refusal(f"must ask for at most {quantity_max} of one pool; the lines of {line.pool!r} sum up to more")
    return lines


class HoldBody(Body):
    """Body of `POST /v1/holds`."""

    lines: Annotated[list[LineBody], BeforeValidator(_few_lines), AfterValidator(_within_sums)] = Field(
        description="What to hold. Lines of the same pool are summed.", min_length=1
    )
    ttl_seconds: TtlSeconds | None = Field(
        None,
        description="Time to live, at most the lifetime cap; else the shortest of its pools' or the setting.",
    )
    owner: KeyText | None = Field(None, description="Who holds, such as a customer or a session.")
    reference: KeyText | None = Field(None, description="Your name for it, such as an order number.")
    mode: Annotated[
        Literal["all_or_nothing"],
        *only("all_or_nothing", "must be 'all_or_nothing', which this version serves only"),
    ] = Field("all_or_nothing", description="Every line or none.")
    confirm: Annotated[Literal[False], *only(False, "must be false: this version confirms by a call of its own")] = (
        Field(default=False, description="Place and confirm at once: not served by this version.")
    )
    metadata: Metadata = Field(default_factory=dict, description="Yours.")

    def place(self) -> Place:
        """The wish, with each pool once."""
        lines = sum_lines([Line(line.pool, line.quantity) for line in self.lines])
        return Place(lines, self.ttl_seconds, self.owner, self.reference, self.metadata)


class ExtendBody(Body):
    """Body of `POST /v1/holds/{id}/extend`."""

    ttl_seconds: TtlSeconds = Field(description="Seconds from now; never shortens, at most the lifetime cap.")


class EmptyBody(Body):
    """Body of a call that takes no fields: nothing at all, or an empty object."""


def validated(
    model: type[BodyType],
    value: object,
    faults: list[Fault],
    settings: Settings,
    *,
    faults_max: int = FAULTS_MAX,
) -> BodyType:
    """`value` as `model`; else `ValidationFailed` with every fault, the `faults` found before included."""
    try:
        valid = model.model_validate(value, context=settings)
    except ValidationError as error:
        faults = _merge(faults, error)
    else:
        if not faults:
            return valid
    if len(faults) > faults_max:
        rest = Fault("", f"has {len(faults) - faults_max} faults more, which are not listed")
        faults = [*faults[:faults_max], rest]
    raise ValidationFailed(faults)


def _merge(faults: list[Fault], error: ValidationError) -> list[Fault]:
    known = {fault.pointer for fault in faults}
    merged = list(faults)
    for detail in error.errors(include_url=False, include_context=False, include_input=False):
        if detail["type"] == "string_unicode":
            continue  # a lone surrogate, among `faults` already, with a pointer that pydantic cannot give
        fault = _fault(detail["loc"], _SENTENCES.get(detail["type"], detail["msg"]))
        if fault.pointer not in known:
            merged.append(fault)
    return merged


def _fault(location: tuple[int | str, ...], sentence: str) -> Fault:
    pointer = "".join(map(pointer_token, location))
    if location and len(str(location[-1])) > QUOTE_LENGTH_MAX:
        # Only an unknown field can have such a name; the object that has it is pointed at instead.
        parent = "".join(map(pointer_token, location[:-1]))
        return Fault(parent, f"has an unknown field with a name of {len(str(location[-1]))} characters")
    return Fault(pointer, sentence)
