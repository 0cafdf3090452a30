//! The set agrees with a plain bitmap under random insertions.

use super::*;
use alloc::vec::Vec;

#[test]
fn the_set_agrees_with_a_bitmap() {
    let mut rng = fastrand::Rng::with_seed(7);
    for _ in 0..200 {
        let mut set = RangeSet::new();
        let mut bits = [false; 200];
        for _ in 0..40 {
            let start = rng.u64(0..200);
            let end = (start + rng.u64(0..30)).min(200);
            let fresh = (start..end).filter(|&i| !bits[i as usize]).count() as u64;
            assert_eq!(set.insert(start, end), fresh);
            (start..end).for_each(|i| bits[i as usize] = true);
            let (a, b) = (rng.u64(0..200), rng.u64(0..=200));
            if a < b {
                let missing: Vec<u64> = (a..b).filter(|&i| !bits[i as usize]).collect();
                let gaps: Vec<u64> = set.gaps(a, b).flat_map(|(s, e)| s..e).collect();
                assert_eq!(gaps, missing, "{a}..{b} of {set:?}");
                assert_eq!(set.contains(a, b), missing.is_empty());
            }
            let prefix = bits.iter().take_while(|&&b| b).count() as u64;
            assert_eq!(set.prefix(), prefix);
        }
    }
}
