//! Parts from blocks in many orders.

use super::*;
use std::sync::mpsc::{SyncSender, sync_channel};

const BLOCK: u64 = PART_BYTES / 4;

/// A queue, and its source.
struct Rig {
    queue: Queue,
    blocks: SyncSender<Block>,
    sent: u64,
}

impl Rig {
    fn new() -> Self {
        let (blocks, from) = sync_channel(64);
        Self { queue: Queue::new(from), blocks, sent: 0 }
    }

    /// Sends the blocks at these places, each filled with its number.
    fn send(&mut self, places: &[u64]) {
        for place in places {
            let bytes = vec![self.sent as u8; BLOCK as usize];
            self.blocks.send(Block { number: self.sent, offset: place * BLOCK, bytes }).unwrap();
            self.sent += 1;
        }
    }

    /// The place of the next part, and the numbers of its blocks.
    fn next(&mut self, ahead: Ahead, awaited: u64) -> Option<(u64, Vec<u64>)> {
        self.queue.next(ahead, awaited).map(shown)
    }

    fn while_another_is_under_way(&mut self) -> Option<(u64, Vec<u64>)> {
        self.next(Ahead::Yes, 0)
    }
}

/// Where a part begins, and the numbers of its blocks in the order of their bytes.
fn shown(piece: Piece) -> (u64, Vec<u64>) {
    for (block, number) in piece.bytes.chunks(BLOCK as usize).zip(&piece.numbers) {
        assert!(block.iter().all(|byte| u64::from(*byte) == *number), "{number}");
    }
    (piece.offset / BLOCK, piece.numbers)
}

#[test]
fn blocks_wait_until_they_fill_a_part_while_another_is_under_way() {
    let mut rig = Rig::new();
    rig.send(&[0, 1, 2]);
    assert_eq!(rig.while_another_is_under_way(), None);
    rig.send(&[3, 4]);
    assert_eq!(rig.while_another_is_under_way(), Some((0, vec![0, 1, 2, 3])));
    assert_eq!(rig.while_another_is_under_way(), None);
    assert_eq!(rig.next(Ahead::No, 0), Some((4, vec![4])), "nothing is under way");
}

#[test]
fn blocks_in_any_order_are_one_part() {
    let mut rig = Rig::new();
    // Four readers, each at its own place of the source.
    rig.send(&[20, 0, 10, 30, 11, 31, 1, 21, 3, 12, 33, 22]);
    assert_eq!(rig.while_another_is_under_way(), None);
    rig.send(&[2, 32]);
    assert_eq!(rig.while_another_is_under_way(), Some((0, vec![1, 6, 12, 8])));
    assert_eq!(rig.while_another_is_under_way(), Some((30, vec![3, 5, 13, 10])));
    assert_eq!(rig.while_another_is_under_way(), None);
}

#[test]
fn nothing_waits_for_more_at_the_end_of_the_source() {
    let mut rig = Rig::new();
    rig.send(&[7, 0, 1]);
    assert_eq!(rig.while_another_is_under_way(), None);
    let Rig { mut queue, blocks, .. } = rig;
    drop(blocks);
    let mut next = |ahead| queue.next(ahead, 0).map(shown);
    assert_eq!(next(Ahead::Yes), Some((0, vec![1, 2])));
    assert_eq!(next(Ahead::Yes), Some((7, vec![0])));
    assert_eq!((next(Ahead::Yes), next(Ahead::No)), (None, None));
}

#[test]
fn a_block_whose_confirmation_is_awaited_does_not_wait() {
    let mut rig = Rig::new();
    rig.send(&[0, 5, 6, 1]);
    assert_eq!(rig.next(Ahead::Yes, 0), None);
    assert_eq!(rig.next(Ahead::Yes, 2), Some((0, vec![0, 3])));
    assert_eq!(rig.next(Ahead::Yes, 2), Some((5, vec![1, 2])));
    rig.send(&[8]);
    assert_eq!(rig.next(Ahead::Yes, 4), None);
}

#[test]
fn the_number_of_waiting_bytes_is_bounded() {
    let mut rig = Rig::new();
    let apart: Vec<u64> = (0..40).map(|place| place * 2).collect();
    rig.send(&apart);
    let blocks = WAITING_BYTES_MAX / BLOCK;
    for number in 0..40 - (blocks - 1) {
        assert_eq!(rig.while_another_is_under_way(), Some((number * 2, vec![number])));
    }
    assert_eq!(rig.while_another_is_under_way(), None);
    assert_eq!(rig.queue.waiting.len() as u64, blocks - 1);
}

#[test]
fn bytes_that_are_overwritten_go_before_those_that_overwrite_them() {
    let mut rig = Rig::new();
    rig.send(&[0, 1, 2, 2]);
    assert_eq!(rig.while_another_is_under_way(), Some((0, vec![0, 1, 2])));
    assert_eq!(rig.while_another_is_under_way(), None);
    assert_eq!(rig.next(Ahead::No, 0), Some((2, vec![3])));
}

#[test]
fn parts_of_a_lost_connection_go_first_and_in_their_order() {
    let mut rig = Rig::new();
    rig.send(&[0, 9, 4]);
    let parts: Vec<_> = (0..2).filter_map(|_| rig.queue.next(Ahead::No, 0)).collect();
    parts.into_iter().rev().for_each(|piece| rig.queue.again(piece));
    assert_eq!(rig.while_another_is_under_way(), Some((0, vec![0])));
    assert_eq!(rig.while_another_is_under_way(), Some((4, vec![2])));
    assert_eq!(rig.while_another_is_under_way(), None);
    assert_eq!(rig.next(Ahead::No, 0), Some((9, vec![1])));
}
