//! The kinds of failures of files, and their exit codes.

use hikyaku_console::ExitCode;
use hikyaku_fs::FsError;
use hikyaku_transfer::FailureKind;
use rustix::io::Errno;

/// The exit code of a copy where a file has failed for this reason.
pub const fn exit_code_of(kind: FailureKind) -> ExitCode {
    match kind {
        FailureKind::Busy | FailureKind::Changed => ExitCode::MayPass,
        FailureKind::Damaged | FailureKind::Io | FailureKind::Other => ExitCode::Failed,
        FailureKind::NotFound
        | FailureKind::Exists
        | FailureKind::NotDirectory
        | FailureKind::IsDirectory
        | FailureKind::Denied
        | FailureKind::ReadOnly
        | FailureKind::NoSpace
        | FailureKind::Quota
        | FailureKind::TooLarge
        | FailureKind::BadName
        | FailureKind::Link
        | FailureKind::Special
        | FailureKind::Unsupported
        | FailureKind::TooManyFiles => ExitCode::WillFail,
    }
}

/// The kind of a failure of the file system.
pub const fn kind_of_fs_error(error: &FsError) -> FailureKind {
    match error {
        FsError::System { errno, .. } => kind_of_errno(*errno),
        FsError::Link { .. } => FailureKind::Link,
        FsError::Special { .. } => FailureKind::Special,
        FsError::OnlyInPlace { .. } | FsError::NotOurs { .. } => FailureKind::Denied,
        FsError::Exchanged { .. } => FailureKind::Changed,
        FsError::Busy { .. } => FailureKind::Busy,
        FsError::Path { .. } => FailureKind::BadName,
    }
}

/// The kind of an error number of the kernel.
pub const fn kind_of_errno(errno: Errno) -> FailureKind {
    match errno {
        Errno::NOENT => FailureKind::NotFound,
        Errno::EXIST | Errno::NOTEMPTY => FailureKind::Exists,
        Errno::NOTDIR => FailureKind::NotDirectory,
        Errno::ISDIR => FailureKind::IsDirectory,
        Errno::ACCESS | Errno::PERM => FailureKind::Denied,
        Errno::ROFS => FailureKind::ReadOnly,
        Errno::NOSPC => FailureKind::NoSpace,
        Errno::DQUOT => FailureKind::Quota,
        Errno::FBIG => FailureKind::TooLarge,
        Errno::NAMETOOLONG | Errno::ILSEQ => FailureKind::BadName,
        Errno::LOOP => FailureKind::Link,
        Errno::BUSY | Errno::TXTBSY => FailureKind::Busy,
        Errno::OPNOTSUPP | Errno::NOSYS => FailureKind::Unsupported,
        Errno::MFILE | Errno::NFILE => FailureKind::TooManyFiles,
        Errno::IO => FailureKind::Io,
        _ => FailureKind::Other,
    }
}
