//! Conversion between the types of the protocol and those of a store.

use hikyaku_sftp::{Attributes, Failed, Status};
use hikyaku_store::{Ability, ErrorKind, Found, Identity, Kind, Owner, StorePath, Time};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The metadata of an entry. `modified` is its time in seconds since 1970 where that is known better than from
/// `attributes`. `None` if the server has sent no kind, mode, or size of a file.
pub(crate) fn found(
    path: &StorePath,
    attributes: &Attributes,
    modified: Option<i64>,
) -> Option<Found> {
    let kind = kind(attributes)?;
    let size = if kind == Kind::Dir { 0 } else { attributes.size? };
    let secs = match modified {
        Some(secs) => secs,
        // A server may have no times.
        None => attributes.times.map_or(0, |(_, modified)| modified.into()),
    };
    let (user, group) = attributes.owner.unwrap_or_default();
    Some(Found {
        kind,
        size,
        allocated: size,
        mode: attributes.mode? & 0o7777,
        owner: Owner { user, group },
        modified: Time { secs, nanos: 0 },
        identity: identity(path),
        version: None,
    })
}

/// The kind of an entry; `None` if the server has not sent it.
pub(crate) fn kind(attributes: &Attributes) -> Option<Kind> {
    Some(match attributes.kind()? {
        hikyaku_sftp::Kind::File => Kind::File,
        hikyaku_sftp::Kind::Dir => Kind::Dir,
        hikyaku_sftp::Kind::Link => Kind::Link,
        hikyaku_sftp::Kind::Special => Kind::Special,
    })
}

/// The protocol has no inode numbers: the identity is that of the path.
pub(crate) fn identity(path: &StorePath) -> Identity {
    let mut hasher = DefaultHasher::new();
    path.as_bytes().hash(&mut hasher);
    Identity { device: 0, number: hasher.finish() }
}

/// Access and modification time as version 3 has them.
///
/// # Errors
///
/// The time is before 1970 or after 2106.
pub(crate) fn times(time: Time) -> Result<(u32, u32), ErrorKind> {
    let secs = u32::try_from(time.secs);
    secs.map(|secs| (secs, secs)).map_err(|_| ErrorKind::Unsupported(Ability::Times))
}

/// Words of servers that give a reason beside the code "failure", in lower case.
const REASONS: [(&str, ErrorKind); 8] = [
    ("quota", ErrorKind::Quota),
    ("no space", ErrorKind::NoSpace),
    ("disk full", ErrorKind::NoSpace),
    ("not empty", ErrorKind::NotEmpty),
    ("read-only", ErrorKind::ReadOnly),
    ("exists", ErrorKind::Exists),
    ("not a directory", ErrorKind::NotDir),
    ("too large", ErrorKind::TooLarge),
];

/// The code with which OpenSSH's server answers to a name that is too long or invalid.
const BAD_MESSAGE: u32 = 5;

/// The reason of a failed request, as far as the answer has it. [`crate::explain`] finds more.
pub(crate) fn reason(failed: &Failed) -> ErrorKind {
    match failed {
        Failed::Refused { status, text } => match status {
            Status::NoSuchFile => ErrorKind::NotFound,
            Status::Denied => ErrorKind::Denied,
            Status::Other(BAD_MESSAGE) => ErrorKind::BadName,
            _ => {
                let text = text.to_lowercase();
                let known = REASONS.iter().find(|(words, _)| text.contains(words));
                known.map_or(ErrorKind::Unexplained, |(_, kind)| *kind)
            }
        },
        Failed::Lost(_) => ErrorKind::Unreachable,
        Failed::Odd | Failed::Version(_) | Failed::Broken(_) => ErrorKind::PROTOCOL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_beside_the_code_tells_the_reason() {
        let of = |status, text: &str| reason(&Failed::Refused { status, text: text.to_owned() });
        assert_eq!(of(Status::Failure, "Disk quota exceeded"), ErrorKind::Quota);
        assert_eq!(of(Status::Failure, "No space left on device"), ErrorKind::NoSpace);
        assert_eq!(of(Status::Failure, "Failure"), ErrorKind::Unexplained);
        assert_eq!(of(Status::NoSuchFile, "it exists"), ErrorKind::NotFound);
        assert_eq!(reason(&Failed::Lost(String::new())), ErrorKind::Unreachable);
    }

    #[test]
    fn a_time_that_the_protocol_does_not_have_is_refused() {
        assert_eq!(times(Time { secs: 7, nanos: 9 }), Ok((7, 7)));
        for secs in [-1, 1 << 32] {
            let refused = Err(ErrorKind::Unsupported(Ability::Times));
            assert_eq!(times(Time { secs, nanos: 0 }), refused, "{secs}");
        }
    }
}
