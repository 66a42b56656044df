"""The page that every list is answered in; owns no order and no cursor."""

from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A page of a list; `more` says that items follow the last one."""

    items: tuple[T, ...]
    more: bool
