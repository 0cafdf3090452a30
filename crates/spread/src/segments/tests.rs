//! The runs agree with a plain bit map under random changes.

use super::*;

#[test]
fn runs_agree_with_a_bit_map() {
    let mut rng = fastrand::Rng::with_seed(7);
    let (mut runs, mut bits) = (Segments::default(), [false; 64]);
    for step in 0..20_000 {
        let a = rng.u32(0..64);
        let run = Run::new(a, rng.u32(a..=64));
        let range = run.first as usize..run.end as usize;
        match rng.u8(0..4) {
            0 => {
                runs.insert(run);
                bits[range].fill(true);
            }
            1 => {
                let removed: u32 = runs.remove(run).iter().map(|run| run.count()).sum();
                assert_eq!(removed as usize, bits[range.clone()].iter().filter(|&&b| b).count());
                bits[range].fill(false);
            }
            2 => {
                let missing: u32 = runs.missing(run).iter().map(|run| run.count()).sum();
                assert_eq!(missing as usize, bits[range].iter().filter(|&&b| !b).count());
            }
            _ => {
                let taken = if rng.bool() { runs.take_front(3) } else { runs.take_back(3) };
                for at in taken.into_iter().flat_map(|run| run.first..run.end) {
                    assert!(core::mem::replace(&mut bits[at as usize], false));
                }
            }
        }
        let expected = bits.iter().filter(|&&bit| bit).count();
        assert_eq!(runs.count() as usize, expected, "step {step}");
        let sorted = runs.runs().windows(2).all(|two| two[0].end < two[1].first);
        assert!(sorted && runs.runs().iter().all(|run| run.count() > 0), "step {step}: {runs:?}");
        for run in runs.runs() {
            assert!(bits[run.first as usize..run.end as usize].iter().all(|&bit| bit));
        }
    }
}

#[test]
fn the_last_segment_is_as_short_as_the_file_says() {
    let size = DataSize::from_bytes(2 * SEGMENT_BYTES + 5);
    assert_eq!(Run::new(0, 3).bytes(size), size.bytes());
    assert_eq!(Run::new(2, 3).bytes(size), 5);
    assert_eq!(Run::new(3, 4).bytes(size), 0);
}
