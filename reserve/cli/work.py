"""`reserve work`: finds the registry of an application and runs a worker on it until a signal comes."""

import asyncio
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

from reserve.cli.running import Stop, run, stop_signals
from reserve.db.connection import Database
from reserve.errors import InvalidRequest
from reserve.names import normalise_key
from reserve.settings import Settings
from reserve.worker import Registry, Worker

_OURS = str(Path(__file__).parents[1])


def load_registry(where: str) -> Registry:
    """The registry at `MODULE:REGISTRY`, with the current folder on the path; `InvalidRequest` says what is wrong."""
    module_name, colon, attribute = where.partition(":")
    if not colon or not module_name or not attribute.isidentifier() or module_name.startswith("."):
        raise InvalidRequest(f"{where!r} is not MODULE:REGISTRY, for instance shop.jobs:jobs.")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    registry = _get(_import(module_name), module_name, attribute)
    if not registry.handlers:
        raise InvalidRequest(f"The registry {where!r} is empty: importing {module_name!r} has registered no handler.")
    return registry


def parse_lanes(text: str) -> list[str]:
    """The names between commas; `InvalidRequest` says which is none."""
    names = []
    for name in text.split(","):
        try:
            names.append(normalise_key(name))
        except ValueError as error:
            raise InvalidRequest(f"--lanes {text!r}: the name {name!r} {error}.") from None
    return names


def work(settings: Settings, registry: Registry, lanes: Sequence[str], concurrency: int) -> int:
    """Work until a signal comes; the exit code. Ends the process itself if a handler does not end."""
    return run(_work(settings, registry, lanes, concurrency))


async def _work(settings: Settings, registry: Registry, lanes: Sequence[str], concurrency: int) -> int:
    async with Database.open(settings) as database:
        worker = Worker(database, registry, lanes=lanes, concurrency=concurrency)
        with stop_signals() as stop:
            stop.when_repeated(worker.stop_now)
            stopping = asyncio.create_task(_stop_when_asked(stop, worker))
            try:
                await worker.run()
            finally:
                stopping.cancel()
            if worker.stuck:
                # Its jobs have been given back. The event loop would wait for it for ever when it closes.
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(stop.exit_code)
            return stop.exit_code


async def _stop_when_asked(stop: Stop, worker: Worker) -> None:
    await stop.wait()
    worker.stop()


def _import(name: str) -> object:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise InvalidRequest(
                f"There is no module {error.name!r} in the current folder or among the installed packages."
            ) from error
        raise _broken(name, error) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module that exits when it is imported is one that cannot be
        raise _broken(name, error) from error


def _broken(name: str, error: BaseException) -> InvalidRequest:
    frames = traceback.extract_tb(error.__traceback__)
    # The last place that is neither the import system's, whose frames have no file, nor ours, who complains.
    places = [
        f" ({frame.filename}:{frame.lineno})"
        for frame in frames
        if not frame.filename.startswith(("<", _OURS, importlib.__file__))
    ]
    what = f"{type(error).__name__}: {error}".rstrip(": .")
    return InvalidRequest(f"The module {name!r} cannot be imported: {what}{places[-1] if places else ''}.")


def _get(module: object, module_name: str, attribute: str) -> Registry:
    try:
        found = getattr(module, attribute)
    except AttributeError:
        known = [name for name, value in vars(module).items() if isinstance(value, Registry)]
        hint = f"; it has the registry {known[0]!r}" if known else ""
        raise InvalidRequest(f"The module {module_name!r} has no {attribute!r}{hint}.") from None
    if not isinstance(found, Registry):
        raise InvalidRequest(f"{module_name}:{attribute} is no Registry, but {type(found).__name__}.")
    return found
