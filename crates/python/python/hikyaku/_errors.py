"""One class for each kind of failure."""

from __future__ import annotations

import errno
from typing import List, Optional, Tuple, Type

Failures = List[Tuple[str, str, str]]


class Error(OSError):
    """A failure of a session or of a file. ``errno`` and ``filename`` are those of the first failure."""

    remedy: Optional[str] = None
    """What to do about it, if that is known."""

    failures: Failures = []
    """Each file that could not be transferred: its path, the kind of failure, and the reason."""


class UnknownHost(Error):
    """No address is known for the name of the server."""


class NoAnswer(Error, TimeoutError):
    """Nothing answers at the address of the server, or its connection was lost."""


class WrongKey(Error):
    """The server has another key than the one that is expected."""


class NotAuthorised(Error, PermissionError):
    """The server does not know the key of this client."""


class OtherVersion(Error):
    """The server speaks no version of the protocol that this program speaks."""


class ServerFull(Error):
    """The server has as many clients as it may have."""


class ServerEnds(Error):
    """The server is ending."""


class NoFiles(Error):
    """The server does not offer files, or is no hikyaku server."""


class OutsideRoot(Error):
    """The path leads out of the root of the server."""


class DiskFull(Error):
    """There is no space left, or the quota is used up."""


class NotFound(Error, FileNotFoundError):
    """There is no file of this name."""


class Exists(Error, FileExistsError):
    """There is a file of this name already."""


class IsADirectory(Error, IsADirectoryError):
    """A file was expected, and the name is a directory."""


class NotADirectory(Error, NotADirectoryError):
    """A directory was expected, and the name is something else."""


class Denied(Error, PermissionError):
    """Permission denied, or the server lets this client only read."""


class Busy(Error):
    """Somebody else is writing to the file."""


class Changed(Error):
    """The file changed while it was read, or servers have different files of one name."""


class Damaged(Error):
    """The data differ from what was stored."""


_KINDS: "dict[str, Tuple[Type[Error], int]]" = {
    "unknown_host": (UnknownHost, errno.EHOSTUNREACH),
    "no_answer": (NoAnswer, errno.ETIMEDOUT),
    "wrong_key": (WrongKey, errno.EACCES),
    "not_authorised": (NotAuthorised, errno.EACCES),
    "other_version": (OtherVersion, errno.EPROTO),
    "server_full": (ServerFull, errno.EUSERS),
    "server_ends": (ServerEnds, errno.EAGAIN),
    "no_files": (NoFiles, errno.EOPNOTSUPP),
    "outside_root": (OutsideRoot, errno.EXDEV),
    "no_space": (DiskFull, errno.ENOSPC),
    "quota": (DiskFull, errno.EDQUOT),
    "not_found": (NotFound, errno.ENOENT),
    "exists": (Exists, errno.EEXIST),
    "is_directory": (IsADirectory, errno.EISDIR),
    "not_directory": (NotADirectory, errno.ENOTDIR),
    "denied": (Denied, errno.EACCES),
    "read_only": (Denied, errno.EROFS),
    "busy": (Busy, errno.EBUSY),
    "changed": (Changed, errno.ESTALE),
    "damaged": (Damaged, errno.EBADMSG),
}


def make(kind: str, text: str, filename: Optional[str], remedy: Optional[str], failures: Failures) -> Error:
    """The exception for a kind of failure; called by the extension module."""
    cls, number = _KINDS.get(kind, (Error, errno.EIO))
    words = text if remedy is None else f"{text} ({remedy})"
    error = cls(number, words) if filename is None else cls(number, words, filename)
    error.remedy = remedy
    error.failures = failures
    return error
