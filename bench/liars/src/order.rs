//! What a near side wants of the far one, as it is written on the wire. It is written down here a second time: a
//! liar must be able to say what the program's own types cannot. An order that tells the truth is among the
//! tests; it fails if the two differ.

use serde::Serialize;

/// An order.
#[derive(Clone, Serialize)]
pub enum Order {
    /// Write what comes to this path.
    Put {
        /// Where.
        target: Vec<u8>,
        /// How.
        options: Options,
    },
    /// Send what these paths mean.
    Get {
        /// Which.
        sources: Vec<Vec<u8>>,
        /// How.
        options: Options,
    },
}

/// How a copy is made.
#[derive(Clone, Default, Serialize)]
#[expect(clippy::struct_excessive_bools, reason = "the order of the fields is that of the wire")]
#[expect(missing_docs, reason = "the program's own `Options` say it")]
pub struct Options {
    pub recursive: bool,
    pub preserve: bool,
    pub keep_links: bool,
    pub keep_owners: bool,
    pub keep_attributes: bool,
    pub in_place: bool,
    pub durable: bool,
    pub fresh: bool,
    pub verify: bool,
    pub existing: Existing,
    pub rehearsal: bool,
    pub files: Vec<Vec<u8>>,
    pub limit: Option<u64>,
    pub several: bool,
    pub exclude: Vec<String>,
    pub include: Vec<String>,
}

/// Which files at the target are left alone.
#[derive(Clone, Copy, Default, Serialize)]
#[expect(missing_docs, reason = "the program's own `Existing` says it")]
pub enum Existing {
    #[default]
    Replaced,
    KeptIfNewer,
    Kept,
}

impl Options {
    /// As `-a --fresh` makes them.
    pub fn archive() -> Self {
        let on = true;
        Self {
            recursive: on,
            preserve: on,
            keep_links: on,
            keep_owners: on,
            keep_attributes: on,
            durable: on,
            fresh: on,
            ..Self::default()
        }
    }
}
