//! A run yields the bytes it refers to, however it is split.

use super::*;

fn run() -> (Run, Vec<u8>) {
    let bytes: Vec<u8> = (0..100).collect();
    let shape = Shape { first: 5, stride: 20, chunk: 8, skip: 0, len: 28 };
    let run = Run::new(Arc::new(Slab::new(bytes, None)), shape);
    let want = (5..13).chain(25..33).chain(45..53).chain(65..69).collect();
    (run, want)
}

#[test]
fn pieces_advance_and_truncate() {
    let (whole, want) = run();
    assert_eq!(whole.to_vec(), want);
    for from in 0..=want.len() {
        for to in from..=want.len() {
            let mut part = whole.clone();
            part.truncate(to);
            part.advance(from);
            assert_eq!(part.to_vec(), want[from..to]);
            assert_eq!(part.len(), to - from);
        }
    }
}

#[test]
fn copy_to_fills_the_output_and_leaves_the_rest() {
    let (mut run, want) = run();
    let mut out = [0; 10];
    assert_eq!(run.copy_to(&mut out), 10);
    assert_eq!(out, want[..10]);
    assert_eq!(run.to_vec(), want[10..]);
}
