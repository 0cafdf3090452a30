//! How blocks that are absent are asked for.

use super::*;
use crate::nodes::{self, Nodes};
use hikyaku_store::{Found, Identity, Kind, Owner, Time};
use std::time::Instant;

/// The requests for these absent blocks of a file of `size` bytes.
fn planned(size: u64, absent: impl IntoIterator<Item = u64>, portion: u64) -> Vec<Fetch> {
    let found = Found {
        kind: Kind::File,
        size,
        allocated: size,
        mode: 0o644,
        owner: Owner::default(),
        modified: Time::default(),
        identity: Identity { device: 1, number: 1 },
        version: None,
    };
    let mut nodes = Nodes::default();
    let sent = crate::changes::Turn::default();
    let seen = nodes::Seen { found, link: None, at: Places::only(0), asked: Instant::now(), sent };
    let number = nodes.observe(&StorePath::new(b"a").unwrap(), seen);
    let absent: Vec<u64> = absent.into_iter().collect();
    plan(number, nodes.at(number).unwrap(), &absent, Class::Ahead, portion)
}

#[test]
fn requests_cover_what_is_absent_once_and_segments_are_whole() {
    let mut rng = fastrand::Rng::with_seed(5);
    for _ in 0..2000 {
        let size = 1 + rng.u64(..40 * SEGMENT_BYTES);
        let blocks = size.div_ceil(BLOCK_BYTES);
        let mut absent: Vec<u64> = Vec::new();
        let (mut at, mut is_absent) = (0, rng.bool());
        while at < blocks {
            let end = blocks.min(at + 1 + rng.u64(..30));
            if is_absent {
                absent.extend(at..end);
            }
            (at, is_absent) = (end, !is_absent);
        }
        let fetches = planned(size, absent.iter().copied(), 2 * SEGMENT_BYTES);
        let mut covered = Vec::new();
        for fetch in fetches {
            covered.extend(fetch.blocks.clone());
            let bytes = fetch.bytes();
            assert!(bytes.start < bytes.end && bytes.end <= size);
            match fetch.form {
                Form::Piece => assert!(bytes.end - bytes.start <= hikyaku_remote::SMALL_BYTES_MAX),
                Form::Segments => {
                    assert_eq!(bytes.start % SEGMENT_BYTES, 0);
                    assert!(bytes.end % SEGMENT_BYTES == 0 || bytes.end == size);
                    assert!(bytes.end - bytes.start <= 2 * SEGMENT_BYTES);
                }
            }
        }
        covered.sort_unstable();
        assert_eq!(covered, absent);
    }
}

#[test]
fn a_short_range_is_a_message_and_a_long_one_an_object() {
    let forms = |absent: Range<u64>| {
        let fetches = planned(100 * SEGMENT_BYTES, absent, 4 * SEGMENT_BYTES);
        fetches.iter().map(|fetch| (fetch.blocks.clone(), fetch.form)).collect::<Vec<_>>()
    };
    assert_eq!(forms(7..8), [(7..8, Form::Piece)]);
    assert_eq!(forms(8..16), [(8..16, Form::Segments)]);
    assert_eq!(forms(7..17), [(7..8, Form::Piece), (16..17, Form::Piece), (8..16, Form::Segments)]);
    assert_eq!(forms(0..64), [(0..32, Form::Segments), (32..64, Form::Segments)]);
}
