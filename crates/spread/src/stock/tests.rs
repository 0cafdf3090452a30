//! Every segment is free, proven or taken, and the sums agree.

use super::*;

const MIB: u64 = 1 << 20;
const SMALL: DataSize = DataSize::from_bytes(256 << 10);

fn set(servers: &[usize]) -> ServerSet {
    let mut set = ServerSet::default();
    servers.iter().for_each(|&server| set.insert(server));
    set
}

fn stock(sizes: &[u64]) -> Stock {
    let mut stock = Stock::default();
    stock.allow_small(SMALL);
    for &size in sizes {
        stock.add(DataSize::from_bytes(size), set(&[0, 1])).unwrap();
    }
    stock
}

fn take(stock: &mut Stock, own: &mut Option<u32>, others: &[u32], mib: u64) -> Option<Piece> {
    stock.take(0, DataSize::from_bytes(mib * MIB), Cursor { own, others, small: SMALL })
}

#[test]
fn whole_files_come_before_shared_ones() {
    let mut stock = stock(&[10 * MIB, 10 * MIB]);
    let (mut first, mut second, mut third) = (None, None, None);
    let part = |file, from, end| Some(Piece::Part(file, Run::new(from, end)));
    assert_eq!(take(&mut stock, &mut first, &[], 4), part(0, 0, 4));
    assert_eq!(take(&mut stock, &mut second, &[0], 2), part(1, 0, 2));
    assert_eq!(take(&mut stock, &mut first, &[1], 2), part(0, 4, 6));
    // Both files are somebody's: the third server takes the end of the one of which more is left.
    assert_eq!(take(&mut stock, &mut third, &[0, 1], 3), part(1, 7, 10));
    assert_eq!(third, None);
    assert_eq!(take(&mut stock, &mut first, &[1], 99), part(0, 6, 10));
    assert_eq!(take(&mut stock, &mut third, &[0, 1], 99), part(1, 2, 7));
    assert_eq!(take(&mut stock, &mut third, &[0, 1], 99), None);
    assert_eq!((stock.free_bytes(), stock.unfinished()), (0, 2));
}

#[test]
fn small_files_are_taken_in_batches() {
    let mut stock = stock(&[100_000; 30]);
    let batch = take(&mut stock, &mut None, &[], 1);
    assert_eq!(batch, Some(Piece::Batch((0..11).collect())));
    assert_eq!(stock.free_bytes(), 19 * 100_000);
    stock.give_back(3, Run::new(0, 1));
    assert_eq!(stock.free_bytes(), 20 * 100_000);
    assert_eq!(stock.peek(0, SMALL), Some(Piece::Part(3, Run::new(0, 1))));
}

#[test]
fn a_server_that_takes_no_file_of_this_size_in_a_batch_gets_it_by_itself() {
    let mut stock = stock(&[100, 200_000, 100, 200_000]);
    let mut take = |small| {
        let small = DataSize::from_bytes(small);
        stock.take(0, DataSize::from_bytes(MIB), Cursor { own: &mut None, others: &[], small })
    };
    assert_eq!(take(1000), Some(Piece::Batch(vec![0])));
    assert_eq!(take(1000), Some(Piece::Part(1, Run::new(0, 1))));
    assert_eq!(take(0), Some(Piece::Part(2, Run::new(0, 1))));
    assert_eq!(stock.peek(0, DataSize::ZERO), Some(Piece::Part(3, Run::new(0, 1))));
    assert_eq!(stock.peek(0, SMALL), Some(Piece::Batch(vec![3])));
}

#[test]
fn what_is_proven_does_not_go_back() {
    let mut stock = stock(&[3 * MIB + 1]);
    assert_eq!(stock.prove(0, &(10..2 * MIB)), Proof::Part);
    assert_eq!(stock.free_bytes(), 2 * MIB + 1);
    take(&mut stock, &mut None, &[], 99);
    take(&mut stock, &mut None, &[], 99);
    assert_eq!(stock.free_bytes(), 0);
    stock.give_back(0, Run::new(0, 4));
    assert_eq!(stock.free_bytes(), 2 * MIB + 1);
    assert_eq!(stock.prove(0, &(0..MIB)), Proof::Part);
    assert_eq!(stock.prove(0, &(2 * MIB..u64::MAX)), Proof::Whole);
    assert_eq!((stock.free_bytes(), stock.unfinished()), (0, 0));
    stock.give_back(0, Run::new(0, 4));
    assert_eq!(stock.prove(0, &(0..u64::MAX)), Proof::Part);
    assert_eq!(stock.free_bytes(), 0);
}

#[test]
fn a_voided_file_starts_again() {
    let mut stock = stock(&[3 * MIB]);
    take(&mut stock, &mut None, &[], 1);
    stock.prove(0, &(0..MIB));
    stock.void(0);
    assert_eq!(stock.free_bytes(), 3 * MIB);
    assert_eq!(stock.prove(0, &(0..3 * MIB)), Proof::Whole);
    stock.void(0);
    assert_eq!((stock.free_bytes(), stock.unfinished()), (3 * MIB, 1));
}

#[test]
fn a_missing_replica_moves_the_file_to_another_group() {
    let mut stock = stock(&[3 * MIB, MIB]);
    take(&mut stock, &mut None, &[], 1);
    stock.remove_replica(0, 1);
    assert_eq!(stock.group(0).replicas(), &set(&[0]));
    let free: Vec<u64> = stock.groups().iter().map(Group::free_bytes).collect();
    assert_eq!((free, stock.free_bytes()), (vec![MIB, 2 * MIB], 3 * MIB));
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let mut stock = stock(&[]);
    let most = u64::from(u32::MAX) * MIB;
    assert!(stock.add(DataSize::from_bytes(most), set(&[0])).is_some());
    assert!(stock.add(DataSize::from_bytes(most + 1), set(&[0])).is_none());
    let files = (1..=5000).find(|_| stock.add(DataSize::from_bytes(most), set(&[0])).is_none());
    assert_eq!(files, Some(4096), "the sum of all sizes has to fit 64 bits");
}
