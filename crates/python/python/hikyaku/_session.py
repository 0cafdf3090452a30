"""Sessions with servers."""

from __future__ import annotations

import os
from typing import Any, Callable, Iterable, List, Optional, Sequence, Tuple, Union

from . import _hikyaku
from ._hikyaku import Done, Entry, HostStatus

Path = Union[str, "os.PathLike[str]"]
Progress = Union[Callable[[int, int], Any], Any]


class Session:
    """Servers that are connected once and stay connected until :meth:`stop`.

    ``hosts`` is ``"hikyaku://HOST:PORT,HOST"``, a cluster of the user's settings, or a list of ``"HOST:PORT"``. Rates are
    texts such as ``"300m"``; sizes are bytes, times are seconds. Only those servers take part that can be reached now;
    :meth:`status` tells of the others too.

    All calls that wait let other threads run, and end when Ctrl-C is pressed.
    """

    def __init__(
        self,
        hosts: Union[str, Sequence[str]],
        *,
        log_dir: Optional[Path] = None,
        keys: Sequence[str] = (),
        rate: Optional[str] = None,
        server_rate: Optional[str] = None,
        window: Optional[int] = None,
        streams: int = 3,
        pause: float = 0.0,
        stagger: float = 0.0,
        tcp: bool = False,
    ) -> None:
        names = [hosts] if isinstance(hosts, str) else list(hosts)
        self._session = _hikyaku.Session(
            names,
            log_dir=None if log_dir is None else os.fspath(log_dir),
            keys=list(keys),
            rate=rate,
            server_rate=server_rate,
            window=window,
            streams=streams,
            pause=pause,
            stagger=stagger,
            tcp=tcp,
        )

    def download(
        self,
        files: Union[str, Iterable[str]],
        to: Path,
        *,
        progress: Optional[Progress] = None,
        keep_modes: bool = False,
    ) -> Done:
        """Fetches files and directories from all servers that have them.

        As with scp: a directory ``to`` receives them, any other ``to`` is the new name of a single one. ``progress`` is
        called with the bytes that are there and the bytes of all; a tqdm bar is fine too.
        """
        names = [files] if isinstance(files, str) else list(files)
        return self._session.download(names, os.fspath(to), _callback(progress), keep_modes)

    def upload(
        self,
        files: Union[Path, Iterable[Path]],
        to: str = "",
        *,
        existing: str = "replace",
        progress: Optional[Progress] = None,
        keep_modes: bool = False,
    ) -> Done:
        """Sends files and directories to the servers, each file to one of them.

        ``existing`` says what becomes of older files of the same name: ``"replace"``, ``"keep"``, or ``"newer"``, which
        keeps those that are newer.
        """
        names: List[Path] = [files] if isinstance(files, (str, os.PathLike)) else list(files)
        paths = [os.fspath(name) for name in names]
        return self._session.upload(paths, to, existing, _callback(progress), keep_modes)

    def status(self) -> List[HostStatus]:
        """What each server tells, also of those that could not be reached."""
        return self._session.status()

    def info(self, path: str) -> Entry:
        """What the servers have of this name."""
        return self._session.info(path)

    def ls(self, path: str = "") -> List[Entry]:
        """The names in a directory, of all servers."""
        return self._session.ls(path)

    def read(self, path: str, ranges: Sequence[Tuple[int, int]]) -> List[bytes]:
        """The bytes of ranges ``(from, to)`` of a file, all in one request."""
        return self._session.read(path, list(ranges))

    @property
    def hosts(self) -> List[str]:
        """The servers that were reached."""
        return self._session.hosts()

    @property
    def log_dir(self) -> Optional[str]:
        """The directory for the logs of the session."""
        log_dir = self._session.log_dir()
        return None if log_dir is None else os.fspath(log_dir)

    def stop(self) -> None:
        """Ends the session. A second call has no effect."""
        self._session.stop()

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


def _callback(progress: Optional[Progress]) -> Optional[Callable[[int, int], Any]]:
    """What is called with bytes and total. A bar of tqdm has ``update`` and ``total``."""
    if progress is None or not (hasattr(progress, "update") and hasattr(progress, "total")):
        return progress
    done = 0

    def update(bytes_done: int, total: int) -> None:
        nonlocal done
        progress.total = total
        progress.update(bytes_done - done)
        done = bytes_done

    return update


def copy(source: str, target: str, *, progress: Optional[Progress] = None, **parameters: Any) -> Done:
    """Copies a file or a directory from or to servers: one of the two is ``"hikyaku://HOST,HOST/PATH"``."""
    up = "://" not in source
    hosts, path = _split(target if up else source)
    with Session(hosts, **parameters) as session:
        if up:
            return session.upload(source, path, progress=progress)
        return session.download(path, target, progress=progress)


def _split(url: str) -> Tuple[str, str]:
    """The servers of ``hikyaku://HOST,HOST/PATH``, and the path."""
    scheme, separator, rest = url.partition("://")
    if scheme != "hikyaku" or not separator:
        raise ValueError(f"'{url}' is no hikyaku://HOST,HOST/PATH")
    hosts, _, path = rest.partition("/")
    return f"hikyaku://{hosts}", path
