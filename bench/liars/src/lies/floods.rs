//! Lies that are told without end, until nobody listens: the honest end must hold little of them.

use super::sender::Tell;
use super::words::*;
use super::{Asked, Ends, Lie, lie};
use crate::peer::{Peer, write};
use hikyaku_transfer::{
    Attribute, EntryId, EntryKind, FromReceiver, FromSender, Hole, Kept, PathFigures, SegmentHash,
    SegmentIndex, Sources, Version,
};

use Asked::{Archive, Rehearsal};
use Ends::{Somehow, Stopped, With};

/// Those of an end that sends.
pub(super) fn of_sender() -> Vec<Lie<Tell>> {
    [of_paths(), of_files()].into_iter().flatten().collect()
}

/// Failures and paths.
fn of_paths() -> Vec<Lie<Tell>> {
    vec![
        lie("flood-of-failures", Archive, With(2), flood_of_failures),
        lie("flood-of-own-failures", Archive, With(6), |p| {
            begun(p, &[small(b"run7/f")]);
            p.flood(20_000, |n| small(format!("run7/f/{n}").as_bytes()));
            p.say(&FromSender::End);
        }),
        lie("flood-of-one-directory", Archive, With(0), |p| {
            let long = long(b"run7", 15);
            begun(p, &above(&long));
            p.flood(40_000, |_| dir(&long));
            p.say(&FromSender::End);
        }),
        lie("flood-of-deep-directories", Archive, With(0), |p| {
            let long = long(b"run7", 250);
            begun(p, &above(&long));
            p.flood(2500, |n| dir(&[&long[..], format!("/{n}").as_bytes()].concat()));
            p.say(&FromSender::End);
        }),
        lie("flood-of-deep-files", Archive, With(0), |p| {
            let long = long(b"run7", 250);
            begun(p, &above(&long));
            p.flood(4000, |n| small(&[&long[..], format!("/{n}").as_bytes()].concat()));
            p.say(&FromSender::End);
        }),
        lie("flood-of-causes", Archive, With(6), |p| {
            begun(p, &[dir(b"run7")]);
            p.let_talk();
            p.flood(4000, |n| small(&long(format!("run7/{n}").as_bytes(), 250)));
            p.say(&FromSender::End);
        }),
    ]
}

/// Files, and what belongs to them.
fn of_files() -> Vec<Lie<Tell>> {
    vec![
        // By what they hold, or by how many files may be open.
        lie("flood-of-large-files", Archive, Somehow, |p| {
            begun(p, &[dir(b"run7")]);
            let name = "n".repeat(200);
            p.flood(100_000, |n| large(n, format!("run7/{name}{n}").as_bytes(), 1 << 40));
        }),
        // spec: copy-bound-1
        lie("flood-of-hashes", Archive, With(2), |p| {
            begun(p, &[dir(b"run7")]);
            for id in 0..200 {
                p.say(&large(id, format!("run7/{id}").as_bytes(), 1 << 40).0);
                p.flood(4, |n| hashes(id, 16_000 * n as u32, 16_000));
            }
        }),
        lie("flood-of-holes", Archive, With(2), |p| {
            begun(p, &[dir(b"run7"), large(0, b"run7/sparse", 1 << 51)]);
            p.flood(100, |n| {
                let first = |at: u32| SegmentIndex(2 * (at + 50_000 * n as u32));
                let holes = (0..50_000).map(|at| Hole { first: first(at), count: 1 }).collect();
                (FromSender::Holes { id: EntryId(0), holes }, Vec::new())
            });
        }),
        lie("flood-of-attributes", Archive, Stopped, |p| {
            begun(p, &[dir(b"run7")]);
            p.flood(400, |n| {
                let path = format!("run7/{n}");
                let mut file = entry(n, path.as_bytes(), EntryKind::File { size: 1 << 30 });
                file.attributes =
                    vec![Attribute { name: b"user.x".to_vec(), value: vec![0; 1_000_000] }];
                (FromSender::Entry(file), Vec::new())
            });
        }),
        lie("flood-of-small-attributes", Archive, With(2), |p| {
            begun(p, &[dir(b"run7")]);
            p.flood(600, |n| {
                let (message, bytes) = small(format!("run7/{n}").as_bytes());
                let FromSender::Small { mut entry, hash } = message else {
                    return (message, bytes);
                };
                entry.attributes =
                    vec![Attribute { name: b"user.x".to_vec(), value: vec![0; 1_000_000] }];
                (FromSender::Small { entry, hash }, bytes)
            });
            p.say(&FromSender::End);
        }),
        lie("flood-of-figures", Archive, With(0), |p| {
            begun(p, &[dir(b"run7")]);
            p.flood(1_000_000, |n| (FromSender::Total { files: n, bytes: n }, Vec::new()));
            p.flood(200_000, |_| (FromSender::Path(PathFigures::default()), Vec::new()));
            p.say(&FromSender::End);
        }),
        lie("flood-of-one-file", Archive, With(0), |p| {
            begun(p, &[dir(b"run7")]);
            p.flood(3000, |_| small(b"run7/again"));
            p.say(&FromSender::End);
        }),
        // spec: copy-unread-1
        lie("flood-of-files-given-up", Archive, With(2), |p| {
            begun(p, &[dir(b"run7")]);
            let failure = failure("no");
            p.flood(3000, |n| match n % 2 {
                0 => large(n, b"run7/big", 1 << 30),
                _ => {
                    let id = Some(EntryId(n - 1));
                    (FromSender::Unreadable { id, failure: failure.clone() }, Vec::new())
                }
            });
            p.say(&FromSender::End);
        }),
        lie("flood-of-objects", Archive, Stopped, |p| {
            begun(p, &[dir(b"run7")]);
            let mut all: Vec<_> = (0..16).map_while(|_| p.object()).collect();
            let mut is_taken = true;
            while is_taken {
                is_taken = all.iter_mut().all(|object| write(object, vec![7; 1 << 20]));
            }
        }),
        lie("flood-of-rehearsed", Rehearsal, With(0), |p| {
            begun(p, &[dir(b"run7")]);
            p.flood(50_000, |n| large(n, format!("run7/{n}{CONTROL}").as_bytes(), 1));
            p.say(&FromSender::End);
        }),
    ]
}

fn begun(peer: &mut Peer, first: &[Said]) {
    peer.say(&begin(Sources::One));
    for (message, tail) in first {
        peer.say_with(message, tail);
    }
}

fn flood_of_failures(peer: &mut Peer) {
    begun(peer, &[]);
    let text = CONTROL.repeat(2000);
    peer.flood(5000, |_| unreadable(&text));
    peer.say(&FromSender::End);
}

/// Files of which a receiver says that it has them, each time others.
pub(super) fn has(at: u64, hashes: usize) -> FromReceiver {
    let run = (SegmentIndex(at as u32), vec![SegmentHash([1; 32]); hashes]);
    let path = format!("{}{at}", "x".repeat(4000)).into_bytes();
    FromReceiver::Has { path, version: Version([3; 32]), kept: Kept::Segments(vec![run]) }
}

/// A path of many long names.
fn long(begin: &[u8], names: usize) -> Vec<u8> {
    [begin, &[&b"/"[..], &[b'n'; 240]].concat().repeat(names)].concat()
}

/// The directories of a path, and itself as one.
fn above(path: &[u8]) -> Vec<Said> {
    let slashes = (0..path.len()).filter(|&at| path[at] == b'/');
    slashes.chain([path.len()]).map(|at| dir(&path[..at])).collect()
}
