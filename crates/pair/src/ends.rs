//! Values that both ends of a copy use: its options, its connection, and its counters.

use crate::fault::Fault;
use hikyaku_fs::Kind;
use hikyaku_job::{Allowed, Claimant, Meter, Patterns};
use hikyaku_reach::{Connection, In, Out};
use hikyaku_transfer::{EntryKind, OtherSources, Rules};
use serde::{Deserialize, Serialize};

/// Maximum size in bytes of a file that is sent within the stream of messages. A larger file is an object of the transport.
pub const SMALL: u64 = 256 << 10;

/// One end of a copy while it runs.
pub(crate) struct Ends<'a> {
    pub(crate) connection: &'a Connection,
    pub(crate) incoming: In,
    pub(crate) outgoing: Out,
    pub(crate) fault: &'a Fault,
    pub(crate) meter: &'a Meter,
    pub(crate) options: &'a Options,
    /// Names that the sender may send. Used by the receiver.
    pub(crate) allowed: &'a Allowed,
    /// Names that other parts of the copy have made. Used by the near end.
    pub(crate) claims: Claimant<'a>,
}

/// The rules and the choice of files of a copy, as both ends know them. The order and the types of the fields are those of the
/// message (`docs/internals/transfer-protocol.md`). The rules are encoded as if their fields were fields of this type.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Options {
    /// The rules.
    pub rules: Rules,
    /// Paths below the one source that are copied; if empty, all are.
    pub files: Vec<Vec<u8>>,
    /// The rate limit in bits of file contents per second. The sender reports whether it limits the copy.
    pub limit: Option<u64>,
    /// Whether the command has other sources than those of this end.
    pub other_sources: OtherSources,
    /// Names that are left out.
    pub patterns: Patterns,
}

/// The kind of file that an entry would be at the target.
pub(crate) const fn kind_of(entry: &EntryKind) -> Kind {
    match entry {
        EntryKind::File { .. } => Kind::File,
        EntryKind::Dir => Kind::Dir,
        EntryKind::Link(_) => Kind::Link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_transfer::{
        Attributes, Depth, Durable, Existing, Links, Owners, Pass, Preserve, Resume, Verify, Write,
        encode,
    };

    #[test]
    fn rules_are_encoded_as_fields_of_the_options() {
        let rules = Rules {
            depth: Depth::Tree,
            preserve: Preserve::Times,
            links: Links::Kept,
            owners: Owners::Kept,
            attributes: Attributes::Dropped,
            write: Write::InPlace,
            durable: Durable::Disk,
            resume: Resume::Fresh,
            verify: Verify::ReadBack,
            existing: Existing::KeptIfNewer,
            pass: Pass::DryRun,
        };
        let (files, limit) = (vec![b"a/b".to_vec()], Some(8_000_000));
        let options = Options { rules, files, limit, ..Options::default() };
        let first = (rules.depth, rules.preserve, rules.links, rules.owners, rules.attributes);
        let second = (rules.write, rules.durable, rules.resume, rules.verify);
        let third = (rules.existing, rules.pass, &options.files, options.limit);
        let fields = (first, second, third, options.other_sources, &options.patterns);
        assert_eq!(encode(&options, &[]), encode(&fields, &[]));
    }
}
