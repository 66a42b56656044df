"""The socket to listen on: loopback only until there are credentials, and a clear word if it is taken."""

import errno
import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from reserve.errors import SettingsError

#: Connections that may wait to be accepted; the kernel has a bound of its own, mostly 4096.
BACKLOG = 2048


@dataclass(frozen=True, slots=True)
class Listener:
    """A socket that listens, and the base URL it is reached under."""

    socket: socket.socket
    url: str


@contextmanager
def listening(host: str, port: int, *, port_option: str) -> Iterator[Listener]:
    """Listen on `host` and `port`, 0 for a free one; closed with the context.

    Listens at once, before anything slow is started: whoever comes second on a port is told so at once. Raises
    `SettingsError` when the address is not loopback or cannot be had; `port_option` is what to change then.
    """
    family, address = _resolve(host, port)
    sock = socket.socket(family, socket.SOCK_STREAM)
    with sock:
        # Else a port would stay taken for a minute after a stop.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((address, port))
            sock.listen(BACKLOG)
        except OSError as error:
            raise _refusal(error, address, port, port_option) from error
        shown = f"[{host}]" if ":" in host else host
        yield Listener(sock, f"http://{shown}:{sock.getsockname()[1]}")


def _resolve(host: str, port: int) -> tuple[socket.AddressFamily, str]:
    """The family and address of a loopback host; IPv4 where it has both."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise SettingsError(f"RESERVE_HOST: {host!r} is not an address of this machine.") from None
    addresses = sorted((family, str(sockaddr[0])) for family, _, _, _, sockaddr in found)
    if not all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for _, address in addresses):
        raise SettingsError(
            f"RESERVE_HOST: {host!r} is not a loopback address; until there are credentials the service listens on "
            "127.0.0.1, ::1 or localhost only, behind a proxy that knows whom to let in."
        )
    return addresses[0]


def _refusal(error: OSError, address: str, port: int, port_option: str) -> SettingsError:
    if error.errno == errno.EADDRINUSE:
        return SettingsError(f"Port {port} of {address} is taken: choose another with {port_option}, or 0 for any.")
    reason = os.strerror(error.errno) if error.errno else str(error)
    return SettingsError(f"The service cannot listen on port {port} of {address} ({reason}): see {port_option}.")
