//! Conversion between the types of the protocol and those of a store.

use hikyaku_gridftp::{Facts, FtpError};
use hikyaku_store::{ErrorKind, Found, Identity, Kind, Owner, StorePath, Time};
use hikyaku_transfer::Links;

/// The metadata of a path. Owners have no numbers in the protocol.
pub(crate) fn found(facts: &Facts, path: &StorePath) -> Found {
    let kind = kind(facts);
    let size = if kind == Kind::File { facts.size.unwrap_or(0) } else { 0 };
    let (secs, nanos) = facts.time().unwrap_or_default();
    let identity = match &facts.unique {
        Some(unique) => identity(1, unique.as_bytes()),
        None => identity(0, path.as_bytes()),
    };
    let usual = if kind == Kind::Dir { 0o755 } else { 0o644 };
    Found {
        kind,
        size,
        allocated: size,
        mode: facts.mode.unwrap_or(usual),
        owner: Owner::default(),
        modified: Time { secs, nanos },
        identity,
        version: None,
    }
}

/// A link is special whatever it leads to: nothing is read or changed through it.
pub(crate) fn kind(facts: &Facts) -> Kind {
    use hikyaku_gridftp::Kind as Theirs;
    match facts.kind {
        _ if facts.link.is_some() => Kind::Special,
        Theirs::File if facts.size.is_some() => Kind::File,
        Theirs::Directory | Theirs::Listed => Kind::Dir,
        Theirs::File | Theirs::Link | Theirs::Other => Kind::Special,
    }
}

/// The kind of what a path leads to, if links stand for that.
pub(crate) fn kind_behind(facts: &Facts, links: Links) -> Kind {
    match links {
        Links::Kept => kind(facts),
        Links::Followed => kind(&Facts { link: None, ..facts.clone() }),
    }
}

/// The identity from a server's fact (device 1), or from a path (device 0).
fn identity(device: u64, text: &[u8]) -> Identity {
    let hash = *blake3::hash(text).as_bytes();
    let number = hash.iter().take(8).fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    Identity { device, number }
}

/// The reason of a failure that follows from the error alone.
pub(crate) fn reason(error: &FtpError) -> ErrorKind {
    match error {
        FtpError::NoAddress { .. }
        | FtpError::Connect { .. }
        | FtpError::Control(_)
        | FtpError::Data(_)
        | FtpError::Stopped => ErrorKind::Unreachable,
        FtpError::Stalled(_) | FtpError::NotReached(_) => ErrorKind::TimedOut,
        FtpError::Stranger { source, .. } | FtpError::Elsewhere { source, .. } => reason(source),
        FtpError::BadPath | FtpError::LosesName { .. } => ErrorKind::BadName,
        FtpError::Refused { code, text, .. } => refusal(*code, text),
        FtpError::Tls(_)
        | FtpError::DataTls(_)
        | FtpError::Forbidden { .. }
        | FtpError::Unguarded => ErrorKind::Denied,
        _ => ErrorKind::PROTOCOL,
    }
}

/// Codes of RFC 959, section 4.2.1. 550 is for most reasons; texts are those of strerror(3) at many servers.
fn refusal(code: u16, text: &str) -> ErrorKind {
    let text = text.to_lowercase();
    let says = |words: &str| text.contains(words);
    match code {
        421 | 425 | 426 => ErrorKind::Unreachable,
        430 | 530..=532 => ErrorKind::Denied,
        452 => ErrorKind::NoSpace,
        552 => ErrorKind::Quota,
        _ if says("no space") => ErrorKind::NoSpace,
        _ if says("quota") => ErrorKind::Quota,
        _ if says("not empty") => ErrorKind::NotEmpty,
        _ if says("read-only") => ErrorKind::ReadOnly,
        _ if says("not a directory") => ErrorKind::NotDir,
        _ if says("is a directory") => ErrorKind::IsDir,
        _ if says("no such") || says("not found") || says("not exist") => ErrorKind::NotFound,
        _ if says("exists") => ErrorKind::Exists,
        _ if says("denied") || says("not permitted") => ErrorKind::Denied,
        450 => ErrorKind::Busy,
        _ => ErrorKind::Unexplained,
    }
}

/// Whether the server has no such command (RFC 959, section 4.2.1).
pub(crate) const fn is_unknown(error: &FtpError) -> bool {
    matches!(error, FtpError::Refused { code: 500..=504, .. })
}
