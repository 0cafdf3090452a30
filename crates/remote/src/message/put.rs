//! Messages of uploads: whole small files, and large ones in pieces.

use super::RequestId;
use hikyaku_store::{Time, Version};
use hikyaku_transfer::FileHash;
use serde::{Deserialize, Serialize};

/// A part of an upload. A server that may not be written to refuses it as `ReadOnly`.
// spec: store-feature-4
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Put {
    /// A small file, whose content is behind the message. Answered by [`Reply::Looked`](super::Reply::Looked) when the
    /// file has its name and is on the disk.
    // spec: store-put-1
    Small {
        /// The file, of at most [`SMALL_BYTES_MAX`](super::SMALL_BYTES_MAX).
        file: NewFile,
        /// The hash of its content.
        hash: FileHash,
    },
    /// A draft is begun. Its number is that of this request. Answered by [`Reply::Done`](super::Reply::Done).
    // spec: store-put-2
    Begin {
        /// The file that comes of it.
        file: NewFile,
        /// How many of its bytes are not in holes, about. The server makes sure that it has room for them.
        data: u64,
    },
    /// The next bytes of a draft are behind the message. Answered by [`Reply::Done`](super::Reply::Done) when they are
    /// written.
    // spec: store-put-3
    Bytes {
        /// The draft.
        draft: RequestId,
        /// Where they go: behind the bytes that were written before.
        at: u64,
        /// How many, at most [`SMALL_BYTES_MAX`](super::SMALL_BYTES_MAX).
        length: u32,
        /// Their hash.
        hash: FileHash,
    },
    /// The next bytes of a draft are zeros, which come of a hole and are not sent. Answered by
    /// [`Reply::Done`](super::Reply::Done).
    // spec: store-put-3
    Zeros {
        /// The draft.
        draft: RequestId,
        /// Where they are: behind the bytes that were written before.
        at: u64,
        /// How many.
        length: u64,
    },
    /// All bytes of a draft have been sent, and it gets its name. Answered by [`Reply::Looked`](super::Reply::Looked) when
    /// the file is on the disk.
    // spec: store-put-4
    Finish {
        /// The draft.
        draft: RequestId,
    },
    /// Nothing of a draft is wanted any more. Answered by [`Reply::Done`](super::Reply::Done).
    Drop {
        /// The draft.
        draft: RequestId,
    },
    /// A draft is begun whose size and metadata come by [`Put::FinishAs`]. Its number is that of this request. Answered by
    /// [`Reply::Done`](super::Reply::Done).
    // spec: store-put-6
    BeginUnsized {
        /// The path of the file.
        path: Vec<u8>,
        /// The bytes that are expected, if that is known. The server makes sure that it has room for them.
        expected: Option<u64>,
    },
    /// All bytes of a draft that was begun by [`Put::BeginUnsized`] have been sent, and it gets its name and these metadata.
    /// Answered as [`Put::Finish`].
    // spec: store-put-7
    FinishAs {
        /// The draft.
        draft: RequestId,
        /// The file. Its path is that of the draft, and its size the number of bytes that were sent.
        file: NewFile,
    },
}

/// A file that is to be made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct NewFile {
    /// Its path.
    pub path: Vec<u8>,
    /// Its size in bytes.
    pub size: u64,
    /// Permission bits; `None` for those of a new file at the server.
    pub mode: Option<u32>,
    /// The modification time; `None` for the time when it gets its name.
    pub modified: Option<Time>,
    /// The treatment of an existing file of the name.
    pub taken: Taken,
}

/// The treatment of an existing file that has the name of a new one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum Taken {
    /// The new file replaces it.
    #[default]
    Replaced,
    /// It stays, and the new one is refused as `Exists`.
    Kept,
    /// It is replaced if it has this version; otherwise the new one is refused as `Changed`. Only servers that know
    /// [`Put::FinishAs`] know it.
    ReplacedIf(Version),
}

impl Put {
    /// How many bytes follow the message in its frame.
    pub(super) const fn tail(&self) -> u64 {
        match self {
            Self::Small { file, .. } => file.size,
            Self::Bytes { length, .. } => *length as u64,
            Self::Begin { .. }
            | Self::BeginUnsized { .. }
            | Self::Zeros { .. }
            | Self::Finish { .. }
            | Self::FinishAs { .. }
            | Self::Drop { .. } => 0,
        }
    }
}
