//! What an epoch says of a path.

use super::*;

#[test]
fn an_epoch_with_pauses_says_nothing_of_the_path() {
    let begin = Instant::now();
    for (idle, limited_by) in
        [(0, LimitedBy::Network), (2, LimitedBy::Network), (4, LimitedBy::Disk)]
    {
        let mut epoch = Epoch::begin(begin, 1000);
        let mut moved = 1000;
        for tick in 0..10 {
            moved += if tick < idle { 0 } else { 500 };
            epoch.tick(begin + (tick + 1) * TICK, moved);
        }
        let sample = epoch.sample(7);
        assert_eq!(sample.limited_by, limited_by, "{idle}");
        let bytes = DataSize::from_bytes(u64::from(10 - idle) * 500);
        assert_eq!((sample.n, sample.bytes, sample.elapsed), (7, bytes, 10 * TICK));
    }
}
