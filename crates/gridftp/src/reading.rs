//! Every reader of a server's words at once, for the fuzzer.

use crate::address::{extended_passive, passive, striped_passive};
use crate::base64::decode;
use crate::block::Block;
use crate::channel::{entries_of, quoted};
use crate::facts::{listing, parse};
use crate::features::Features;
use crate::reply::ReplyReader;
use crate::unix_list;

/// Gives `bytes` to every reader of what a server sends: replies with all that is in them, listings and headers of
/// blocks. Nothing but the absence of a panic can be seen of it.
// fuzz: ftp_replies
pub fn read_anything(bytes: &[u8]) {
    if let Some((header, _)) = bytes.split_first_chunk() {
        let _ = Block::decode(header);
    }
    let _ =
        (listing(bytes), unix_list::listing(bytes), unix_list::has_itself(bytes), decode(bytes));
    let mut reader = ReplyReader::new();
    for piece in bytes.chunks(97) {
        reader.handle_bytes(piece);
        while let Ok(Some(reply)) = reader.poll_reply() {
            let _ = (
                passive(&reply),
                striped_passive(&reply),
                extended_passive(&reply),
                quoted(&reply),
                entries_of(&reply),
                Features::of(&reply),
                reply.text(),
            );
            for line in &reply.lines {
                let _ = parse(line).map(|(facts, _)| facts.time());
            }
        }
    }
}
