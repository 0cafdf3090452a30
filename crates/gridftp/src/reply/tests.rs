//! Replies, whole and cut, and what is none.

use super::*;

/// All replies in `bytes`, which arrive in pieces of `piece` bytes.
fn read(bytes: &[u8], piece: usize) -> Result<Vec<Reply>, ReplyError> {
    let (mut reader, mut replies) = (ReplyReader::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        reader.handle_bytes(piece);
        while let Some(reply) = reader.poll_reply()? {
            replies.push(reply);
        }
    }
    Ok(replies)
}

#[test]
fn replies_are_read_however_they_are_cut() {
    let bytes =
        b"220 ready\r\n211-Extensions\r\n SIZE\r\n211-odd\r\n212 no end\r\n211 End.\r\n226\r\n";
    for piece in [1, 2, 7, 1000] {
        let replies = read(bytes, piece).unwrap();
        let codes: Vec<u16> = replies.iter().map(|reply| reply.code).collect();
        assert_eq!(codes, [220, 211, 226]);
        let lines: Vec<&[u8]> = replies[1].lines.iter().map(Vec::as_slice).collect();
        assert_eq!(lines, [&b"Extensions"[..], b" SIZE", b"211-odd", b"212 no end", b"End."]);
        assert_eq!(replies[0].text(), "ready");
    }
}

#[test]
fn what_is_no_reply_is_an_error() {
    for bytes in
        [&b"SSH-2.0-x\r\n"[..], b"\r\n", b"22\r\n", b"099 x\r\n", b"700 x\r\n", b"220x\r\n"]
    {
        assert_eq!(read(bytes, 100), Err(ReplyError::NoCode), "{bytes:?}");
    }
}

#[test]
fn a_line_or_a_reply_without_end_is_refused() {
    let line = vec![b'2'; LINE_BYTES_MAX + 2];
    assert_eq!(read(&line, 100), Err(ReplyError::LongLine));
    let mut reply = b"211-\r\n".to_vec();
    reply.extend(b"\r\n".repeat(REPLY_BYTES_MAX + 1));
    assert_eq!(read(&reply, 4096), Err(ReplyError::LongReply));
}
