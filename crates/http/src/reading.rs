//! For the fuzzer: every reader of a server's bytes in this crate.

use crate::body::chunk_size;
use crate::digest::digests_of;
use crate::head::Head;
use crate::name::name;
use crate::offer::{Offer, Proof};
use crate::range::ContentRange;
use crate::url::Url;

/// Passes `bytes` to every reader of a server's bytes. Wrong input is an error and never a panic.
// fuzz: web
pub fn read_anything(bytes: &[u8]) {
    let _ = chunk_size(bytes);
    if let Ok(Some((head, length))) = Head::parse(bytes) {
        assert!(length <= bytes.len());
        let _ = (digests_of(&head), Offer::of(&head, None));
        if let Ok(offer) = Offer::of(&head, Some(&(0..100)))
            && let Ok(range) = offer.check_part(&head, &(10..100), Proof::Version)
        {
            assert!(range.start == 10 && range.end <= 100);
        }
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    if let Some(part) = ContentRange::parse(text) {
        assert!(part.range.start < part.range.end);
    }
    let base = Url::parse("https://example.org/a/b?c");
    for url in [Url::parse(text), base.and_then(|base| base.join(text))].into_iter().flatten() {
        assert!(
            url.target.starts_with('/') && url.target.bytes().all(|byte| byte.is_ascii_graphic())
        );
        if let Some(name) = name(Some(text), &url) {
            assert!(!name.as_bytes().starts_with(b"."));
        }
    }
}
