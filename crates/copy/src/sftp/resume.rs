//! Going on with a file of which a part is there: the end of that part is compared first.
//!
//! The unfinished file belongs to a version of the source that has not changed since ([`super::journal`]). What a crashed
//! machine has lost of it would be at its end, so that is read again.

use super::fault::{Trouble, here, there};
use hikyaku_sftp::{Asked, Client, DATA_BYTES_MAX, Handle, Request};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Smaller files are copied anew.
pub(super) const RESUMED_BYTES_MIN: u64 = 1 << 20;
/// Bytes that are compared: twice what is under way at once, which a server may have written in any order.
const COMPARED_BYTES: u64 = 4 << 20;

/// Where the compared part of a file begins that has `bytes`.
const fn begin(bytes: u64) -> u64 {
    bytes.saturating_sub(COMPARED_BYTES)
}

/// Whether an unfinished file of the server ends as the first `bytes` of the file here do.
pub(super) fn is_begun_there(
    client: &Client,
    (to, handle): (&[u8], &Handle),
    (from, file): (&Path, &File),
    bytes: u64,
) -> Result<bool, Trouble> {
    let theirs = range(client, handle, begin(bytes), bytes).map_err(there(to))?;
    let mut ours = vec![0; theirs.len()];
    file.read_exact_at(&mut ours, begin(bytes)).map_err(here("read", from))?;
    Ok(theirs.len() as u64 == bytes - begin(bytes) && ours == theirs)
}

/// The bytes from `begin` to `end` of an open file of the server; fewer if it ends before.
fn range(client: &Client, handle: &Handle, begin: u64, end: u64) -> Asked<Vec<u8>> {
    let (mut bytes, mut at) = (Vec::new(), begin);
    let ask = |offset: u64, length: usize| {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        client.ask(&Request::Read { handle: handle.bytes(), offset, length })
    };
    let mut asked = Vec::new();
    while at < end {
        let length = usize::try_from(end - at).unwrap_or(usize::MAX).min(DATA_BYTES_MAX);
        asked.push((length, ask(at, length)));
        at += length as u64;
    }
    for (length, ticket) in asked {
        let mut data = client.data(ticket, length)?;
        while !data.is_empty() && data.len() < length {
            let left = length - data.len();
            let more = client.data(ask(begin + (bytes.len() + data.len()) as u64, left), left)?;
            if more.is_empty() {
                break;
            }
            data.extend(more);
        }
        let is_short = data.len() < length;
        bytes.extend(data);
        if is_short {
            break;
        }
    }
    Ok(bytes)
}
