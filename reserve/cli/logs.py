"""Where log lines go and how they look: one line per event to standard error, set up once. Decides no content.

Lines of libraries come out like our own. Stacks are written without the values of variables, among which are secrets.
"""

import logging
import os
import sys
from collections.abc import Sequence
from typing import Literal

import structlog
from structlog.typing import Processor

from reserve.settings import Settings

_Format = Literal["auto", "console", "keyvalue", "json"]

#: Libraries that tell in their own words, again and again, what our events tell once.
_QUIET = {
    "uvicorn.error": logging.WARNING,  # each start and stop in four lines
    "psycopg.pool": logging.ERROR,  # each attempt to reconnect
    "httpx2": logging.WARNING,  # each request of the demo
}


def configure_logs(settings: Settings, *, least: str | None = None) -> None:
    """Set up logging as `settings` say; `least` replaces their level where it is more important."""
    level = logging.getLevelNamesMapping()[settings.log_level.upper()]
    if least is not None:
        level = max(level, logging.getLevelNamesMapping()[least.upper()])
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    ending = _ending(settings.log_format)
    structlog.configure(
        processors=[*shared, *ending],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    remove = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=shared, processors=[remove, *ending]))
    logging.basicConfig(level=level, handlers=[handler], force=True)
    for name, at_least in _QUIET.items():
        logging.getLogger(name).setLevel(max(level, at_least))


def _ending(wanted: _Format) -> Sequence[Processor]:
    """The processors that make a line of an event, with its stack if it has one."""
    chosen = wanted
    if chosen == "auto":
        chosen = "console" if sys.stderr.isatty() else "keyvalue"
    match chosen:
        case "console":
            colors = sys.stderr.isatty() and "NO_COLOR" not in os.environ
            return [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)]
        case "keyvalue":
            order = ["timestamp", "level", "event"]
            return [structlog.processors.format_exc_info, structlog.processors.LogfmtRenderer(key_order=order)]
        case "json":
            stack = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
            return [structlog.processors.ExceptionRenderer(stack), structlog.processors.JSONRenderer()]
