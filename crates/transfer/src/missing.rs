//! What of a range of bytes is missing.

use std::ops::Range;

/// What of `all` is not in `have`, in order. The ranges of `have` may be in any order, and overlap.
pub fn missing(all: Range<u64>, have: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut have = have.to_vec();
    have.sort_unstable_by_key(|range| range.start);
    let (mut missing, mut at) = (Vec::new(), all.start);
    for range in have {
        let end = range.start.min(all.end);
        if end > at {
            missing.push(at..end);
        }
        at = at.max(range.end.min(all.end));
    }
    if at < all.end {
        missing.push(at..all.end);
    }
    missing
}

#[cfg(test)]
#[allow(clippy::single_range_in_vec_init, reason = "a list of one range is meant")]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_left_out() {
        let missing = |have: &[Range<u64>]| missing(10..100, have);
        assert_eq!(missing(&[]), [10..100]);
        assert_eq!(missing(&[60..70, 0..20, 15..30]), [30..60, 70..100]);
        assert_eq!(missing(&[90..200]), [10..90]);
        assert!(missing(&[0..1000]).is_empty());
    }
}
