"""Fast file transfer over long fat networks: one machine and many servers.

    with hikyaku.Session("hikyaku://node1,node2") as session:
        session.download(["run7"], "data")

Errors are subclasses of :class:`hikyaku.Error`, which is an :class:`OSError`.
"""

from ._errors import (
    Busy,
    Changed,
    Damaged,
    Denied,
    DiskFull,
    Error,
    Exists,
    IsADirectory,
    NoAnswer,
    NoFiles,
    NotADirectory,
    NotAuthorised,
    NotFound,
    OtherVersion,
    OutsideRoot,
    ServerEnds,
    ServerFull,
    UnknownHost,
    WrongKey,
)
from ._hikyaku import Done, Entry, HostStatus, Lost
from ._session import Session, copy

__all__ = [
    "Busy",
    "Changed",
    "Damaged",
    "Denied",
    "DiskFull",
    "Done",
    "Entry",
    "Error",
    "Exists",
    "HostStatus",
    "IsADirectory",
    "Lost",
    "NoAnswer",
    "NoFiles",
    "NotADirectory",
    "NotAuthorised",
    "NotFound",
    "OtherVersion",
    "OutsideRoot",
    "ServerEnds",
    "ServerFull",
    "Session",
    "UnknownHost",
    "WrongKey",
    "copy",
]
