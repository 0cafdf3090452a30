//! For the fuzzer: everything that reads words of a server.

use crate::digest::digests_of;
use crate::links::mirrors;
use crate::metalink;
use crate::name::name;
use crate::offer::{Offer, Proof};
use hikyaku_http::{Head, Url};

/// Passes `bytes` to each reader of a server's bytes. Wrong input is an error and never a panic.
// fuzz: web
pub fn read_anything(bytes: &[u8]) {
    if let Ok(Some((head, _))) = Head::parse(bytes) {
        let _ = (digests_of(&head), Offer::of(&head, None), mirrors(&head, &[]));
        if let Ok(offer) = Offer::of(&head, Some(&(0..100)))
            && let Ok(range) = offer.check_part(&head, &(10..100), Proof::Version)
        {
            assert!(range.start == 10 && range.end <= 100);
        }
    }
    let Ok(text) = str::from_utf8(bytes) else { return };
    let _ = metalink::parse(text);
    let base = Url::parse("https://example.org/a/b?c");
    for url in [Url::parse(text), base.and_then(|base| base.join(text))].into_iter().flatten() {
        if let Some(name) = name(Some(text), &url) {
            assert!(!name.as_bytes().starts_with(b"."));
        }
    }
}
