"""A file system for fsspec: ``fsspec.filesystem("hikyaku", hosts="hikyaku://node1,node2")``, ``hikyaku://HOST,HOST/PATH``."""

from __future__ import annotations

import asyncio
import os
import tempfile
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

from fsspec.asyn import AsyncFileSystem
from fsspec.spec import AbstractBufferedFile

from ._hikyaku import Entry
from ._session import Session, _split


class HikyakuFileSystem(AsyncFileSystem):
    """Files of one or many servers of ``hikyaku serve``.

    The session is started at the first use. Other parameters are those of :class:`hikyaku.Session`.
    """

    protocol = "hikyaku"
    root_marker = ""

    def __init__(self, hosts: Union[str, Sequence[str]], **kwargs: Any) -> None:
        parameters = {name: kwargs.pop(name) for name in _PARAMETERS if name in kwargs}
        super().__init__(**kwargs)
        self.hosts = hosts
        self._parameters = parameters
        self._session: Optional[Session] = None

    @property
    def session(self) -> Session:
        """The session, which is started now if it was not yet."""
        if self._session is None:
            self._session = Session(self.hosts, **self._parameters)
        return self._session

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = os.fspath(path)
        if path.startswith("hikyaku://"):
            path = _split(path)[1]
        return path.strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> Dict[str, str]:
        if not path.startswith("hikyaku://"):
            return {}
        return {"hosts": _split(path)[0]}

    async def _call(self, method: str, *args: Any) -> Any:
        return await asyncio.to_thread(lambda: getattr(self.session, method)(*args))

    async def _info(self, path: str, **kwargs: Any) -> Dict[str, Any]:
        path = self._strip_protocol(path)
        if not path:
            return {"name": "", "size": 0, "type": "directory"}
        return _info(path, await self._call("info", path))

    async def _ls(self, path: str, detail: bool = True, **kwargs: Any) -> List[Any]:
        path = self._strip_protocol(path)
        try:
            entries = await self._call("ls", path)
        except NotADirectoryError:
            infos = [await self._info(path)]
        else:
            infos = [_info(f"{path}/{entry.name}".lstrip("/"), entry) for entry in entries]
        return infos if detail else [info["name"] for info in infos]

    async def _cat_file(
        self, path: str, start: Optional[int] = None, end: Optional[int] = None, **kwargs: Any
    ) -> bytes:
        path = self._strip_protocol(path)
        start, end = await self._range(path, start, end)
        (data,) = await self._call("read", path, [(start, end)])
        return data

    async def _range(self, path: str, start: Optional[int], end: Optional[int]) -> Tuple[int, int]:
        if (start or 0) < 0 or (end or 0) < 0:
            size = (await self._info(path))["size"]
            start = size + start if start is not None and start < 0 else start
            end = size + end if end is not None and end < 0 else end
        return max(start or 0, 0), _ALL if end is None else max(end, 0)

    async def _cat_ranges(
        self,
        paths: List[str],
        starts: Any,
        ends: Any,
        max_gap: Optional[int] = None,
        batch_size: Optional[int] = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> List[Any]:
        """All ranges of one file are one request."""
        starts = starts if isinstance(starts, (list, tuple)) else [starts] * len(paths)
        ends = ends if isinstance(ends, (list, tuple)) else [ends] * len(paths)
        wanted: Dict[str, List[int]] = {}
        for number, path in enumerate(paths):
            wanted.setdefault(self._strip_protocol(path), []).append(number)
        results: List[Any] = [None] * len(paths)

        async def one(path: str, numbers: List[int]) -> None:
            try:
                ranges = [await self._range(path, starts[n], ends[n]) for n in numbers]
                parts = await self._call("read", path, ranges)
            except OSError as error:
                if on_error != "return":
                    raise
                parts = [error] * len(numbers)
            for number, part in zip(numbers, parts):
                results[number] = part

        await asyncio.gather(*(one(path, numbers) for path, numbers in wanted.items()))
        return results

    async def _get_file(self, rpath: str, lpath: Any, **kwargs: Any) -> None:
        rpath = self._strip_protocol(rpath)
        if (await self._info(rpath))["type"] == "directory":
            os.makedirs(lpath, exist_ok=True)
            return
        await asyncio.to_thread(lambda: self.session.download(rpath, lpath))

    async def _put_file(self, lpath: Any, rpath: str, **kwargs: Any) -> None:
        if os.path.isdir(lpath):
            return
        await self._call("upload", lpath, self._strip_protocol(rpath))

    async def _pipe_file(self, path: str, value: bytes, **kwargs: Any) -> None:
        with tempfile.NamedTemporaryFile() as file:
            file.write(value)
            file.flush()
            await self._put_file(file.name, path)

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> AbstractBufferedFile:
        if mode != "rb":
            raise NotImplementedError("files are opened for reading; put_file and pipe_file write whole files")
        return _File(self, path, mode, **kwargs)


class _File(AbstractBufferedFile):
    def _fetch_range(self, start: int, end: int) -> bytes:
        data: bytes = self.fs.cat_file(self.path, start, end)
        return data


_ALL = (1 << 63) - 1
_PARAMETERS = ("log_dir", "keys", "rate", "server_rate", "window", "streams", "pause", "stagger", "tcp")
_TYPES = {"file": "file", "directory": "directory", "link": "link"}


def _info(path: str, entry: Entry) -> Dict[str, Any]:
    return {
        "name": path,
        "size": entry.size if entry.kind == "file" else 0,
        "type": _TYPES.get(entry.kind, "other"),
        "mtime": entry.modified,
        "mode": entry.mode,
        "hosts": entry.hosts,
    }


__all__ = ["HikyakuFileSystem"]
