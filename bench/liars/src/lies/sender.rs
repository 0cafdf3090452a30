//! Lies of an end that sends.

use super::words::*;
use super::{Asked, Ends, Lie, floods, lie};
use crate::peer::{Peer, write};
use hikyaku_transfer::{
    Attribute, EntryId, EntryKind, FromSender, Hole, LimitedBy, PathFigures, SEGMENT, SegmentIndex,
    Sources,
};
use std::time::Duration;

use Asked::{Archive, File, List, Manifest, Pattern, Rehearsal, Tree};
use Ends::{Stopped, With};

/// How a lie is told.
pub type Tell = fn(&mut Peer);

/// All of them.
pub fn all() -> Vec<Lie<Tell>> {
    [unasked(), paths(), in_the_way(), numbers(), orders(), objects(), floods::of_sender()]
        .into_iter()
        .flatten()
        .collect()
}

/// The truth, and what was not asked for.
fn unasked() -> Vec<Lie<Tell>> {
    vec![
        lie("truth", Archive, With(0), truth),
        // What was not asked for.
        lie("unasked-file", File, With(2), |p| script(p, vec![small(b".bashrc")])),
        lie("unasked-pattern", Pattern, With(2), |p| {
            script(p, vec![small(b"a.txt"), small(b"b.sh")])
        }),
        lie("unasked-hidden", Pattern, With(2), |p| script(p, vec![small(b".a.txt")])),
        lie("unasked-list", List, With(2), |p| {
            script_of(p, Sources::Contents, vec![dir(b".ssh"), small(b".ssh/authorized_keys")]);
        }),
        lie("unasked-list-sibling", List, With(2), |p| {
            script_of(p, Sources::Contents, vec![dir(b"d"), small(b"d/other")]);
        }),
        lie("unasked-tree", Tree, With(2), |p| script(p, vec![dir(b"other"), small(b"other/x")])),
        lie("unasked-directory", File, With(2), |p| script(p, vec![dir(b"a"), small(b"a/x")])),
        lie("unasked-link", Tree, With(2), |p| script(p, vec![link(b"run7", "/etc")])),
    ]
}

/// Paths that lead elsewhere.
fn paths() -> Vec<Lie<Tell>> {
    vec![
        lie("up", Archive, With(2), |p| script(p, vec![small(b"run7/../../outside/victim")])),
        lie("up-first", Archive, With(2), |p| script(p, vec![small(b"../outside/victim")])),
        lie("absolute", Archive, With(2), |p| script(p, vec![small(b"/hikyaku-was-here")])),
        lie("zero", Archive, With(2), |p| script(p, vec![small(b"run7/a\0b")])),
        lie("no-name", Archive, With(2), |p| script(p, vec![small(b"run7/")])),
        lie("empty-path", Archive, With(2), |p| script(p, vec![small(b"")])),
        lie("dot", Archive, With(2), |p| script(p, vec![dir(b"run7/."), small(b"run7/./x")])),
        lie("long-name", Archive, With(2), |p| {
            script(p, vec![small(&[&b"run7/"[..], &[b'x'; 300]].concat())]);
        }),
        lie("long-path", Archive, With(2), |p| {
            script(p, vec![small(&[&b"run7"[..], &b"/x".repeat(400_000)].concat())]);
        }),
    ]
}

/// What stands in the way, or is put there.
fn in_the_way() -> Vec<Lie<Tell>> {
    vec![
        lie("through-a-link", Archive, With(6), |p| {
            script(p, vec![small(b"run7/out/victim"), large(0, b"run7/out/new", 1 << 21)]);
        }),
        lie("through-its-own-link", Archive, With(6), |p| {
            script(p, vec![link(b"run7/door", "../../outside"), small(b"run7/door/victim")]);
        }),
        lie("link-in-between", Archive, With(6), |p| {
            let links = (0..50).flat_map(|_| {
                [dir(b"run7/d"), small(b"run7/d/victim"), link(b"run7/d", "../../outside")]
            });
            script(p, links.collect());
        }),
        lie("below-a-file", Archive, With(6), |p| {
            script(p, vec![small(b"run7/f"), small(b"run7/f/x"), dir(b"run7/f/d")]);
        }),
        lie("directory-over-file", Archive, With(6), |p| {
            script(p, vec![small(b"run7/f"), dir(b"run7/f"), dir(b"run7/g"), small(b"run7/g")]);
        }),
        lie("rights", Archive, With(6), rights),
        lie("times", Archive, With(0), times),
    ]
}

/// Sizes, numbers and hashes.
fn numbers() -> Vec<Lie<Tell>> {
    vec![
        lie("larger-than-told", Archive, With(2), larger_than_told),
        lie("tail-longer", Archive, With(2), |p| script(p, vec![(small(b"run7/t").0, vec![1; 9])])),
        lie("tail-shorter", Archive, With(2), |p| script(p, vec![(small(b"run7/t").0, vec![1])])),
        lie("small-that-is-large", Archive, With(2), small_that_is_large),
        lie("size-of-all", Archive, With(2), |p| script(p, vec![large(0, b"run7/big", u64::MAX)])),
        lie("ranges", Archive, With(2), |p| {
            script(p, vec![large(0, b"run7/big", 1 << 21), data(0, 3, &[(0, u64::MAX)])]);
        }),
        lie("ranges-backwards", Archive, With(2), |p| {
            script(p, vec![large(0, b"run7/big", 1 << 21), data(0, 3, &[(SEGMENT, 0)])]);
        }),
        lie("crumbs", Archive, With(2), |p| {
            let crumbs: Vec<_> = (0..9000).map(|n| (n * SEGMENT, n * SEGMENT + 1)).collect();
            script(p, vec![large(0, b"run7/big", 1 << 50), data(0, 3, &crumbs)]);
        }),
        lie("holes", Archive, With(2), |p| {
            let hole = |first, count| Hole { first: SegmentIndex(first), count };
            let holes = vec![hole(1, 1), hole(0, u32::MAX)];
            let holes = (FromSender::Holes { id: EntryId(0), holes }, Vec::new());
            script(p, vec![large(0, b"run7/big", 1 << 21), holes]);
        }),
        lie("figures", Archive, With(0), figures),
        lie("same-of-all", Manifest, With(0), figures),
        lie("twice-the-same-number", Archive, With(2), |p| {
            script(p, vec![large(0, b"run7/a", 1 << 21), large(0, b"run7/b", 1 << 21)]);
        }),
        // Hashes.
        lie("wrong-hash", Archive, With(2), |p| {
            script(p, vec![(small(b"run7/wrong").0, b"good".to_vec())]);
        }),
        lie("wrong-segments", Archive, With(2), wrong_segments),
    ]
}

/// What comes when nothing like it should.
fn orders() -> Vec<Lie<Tell>> {
    vec![
        lie("no-begin", Archive, With(2), |p| {
            p.say_with(&small(b"run7/x").0, b"evil");
        }),
        lie("begin-twice", Archive, With(2), |p| {
            script(p, vec![(begin(Sources::One), Vec::new())])
        }),
        lie("garbage", Archive, With(2), |p| {
            p.say(&begin(Sources::One));
            p.raw([&64_u32.to_le_bytes()[..], &[0xff; 64]].concat());
        }),
        lie("endless-frame", Archive, With(2), |p| {
            p.say(&begin(Sources::One));
            p.raw(vec![0xff; 1 << 20]);
        }),
        lie("cut", Archive, With(2), |p| {
            p.say(&begin(Sources::One));
            p.raw(vec![9, 0, 0, 0, 1]);
            p.finish();
        }),
        lie("no-end", Archive, With(2), |p| {
            p.say(&begin(Sources::One));
            p.finish();
        }),
        lie("silent", Archive, Stopped, |_| {}),
        lie("no-data", Archive, Stopped, |p| {
            script(p, vec![large(0, b"run7/big", 1 << 21), read(0)])
        }),
        lie("leaves", Archive, With(2), |p| {
            p.say(&begin(Sources::One));
            p.connection.close(
                hikyaku_net::AppCode::new(u64::MAX >> 2),
                &format!("{CONTROL}: try: rm -rf {CONTROL}"),
            );
        }),
        lie("words", Archive, With(2), |p| {
            script(p, vec![unreadable(&CONTROL.repeat(50)), small(CONTROL.as_bytes())]);
        }),
    ]
}

/// Objects of the transport.
fn objects() -> Vec<Lie<Tell>> {
    vec![
        lie("object-of-nothing", Archive, With(0), |p| {
            let mut object = p.object();
            if let Some(object) = &mut object {
                write(object, vec![7; 100_000]);
            }
            truth(p);
            p.wait(PATIENCE);
        }),
        lie("object-that-stays-open", Archive, With(0), object_that_stays_open),
        lie("objects-that-never-come", Archive, With(2), |p| {
            let all = (0..1000).map(|n| data(0, 3 + 4 * n, &[(0, SEGMENT)]));
            script(p, [large(0, b"run7/big", SEGMENT)].into_iter().chain(all).collect());
        }),
        lie("bytes-in-a-rehearsal", Rehearsal, With(2), |p| {
            script(p, vec![dir(b"run7/new"), small(b"run7/new/x"), small(b"run7/y")]);
        }),
    ]
}

/// How long a liar waits for the honest end to come to its end.
const PATIENCE: Duration = Duration::from_secs(25);

/// Says all that.
pub(super) fn script(peer: &mut Peer, said: Vec<Said>) {
    script_of(peer, Sources::One, said);
}

fn script_of(peer: &mut Peer, sources: Sources, said: Vec<Said>) {
    peer.say(&begin(sources));
    for (message, tail) in said {
        peer.say_with(&message, &tail);
    }
    peer.say(&FromSender::End);
}

/// What an honest sender could say.
fn truth(peer: &mut Peer) {
    script(peer, vec![dir(b"run7"), small(b"run7/true")]);
}

fn rights(peer: &mut Peer) {
    let attribute = |name: &[u8]| Attribute { name: name.to_vec(), value: vec![1, 0, 0, 2] };
    let mut file = entry(0, b"run7/rights", EntryKind::File { size: 4 });
    file.mode = u32::MAX;
    file.attributes = vec![
        attribute(b"security.capability"),
        attribute(b"trusted.overlay.opaque"),
        attribute(b"user.\0"),
        attribute(b""),
    ];
    script(peer, vec![(FromSender::Small { entry: file, hash: hash(b"evil") }, b"evil".to_vec())]);
}

fn times(peer: &mut Peer) {
    let all = [(i64::MIN, 0), (i64::MAX, u32::MAX), (0, u32::MAX), (i64::MIN, u32::MAX)];
    let files = (0..).zip(all).flat_map(|(n, modified)| {
        let mut dir = entry(n, format!("run7/d{n}").as_bytes(), EntryKind::Dir);
        dir.modified = modified;
        let mut file = entry(n, format!("run7/t{n}").as_bytes(), EntryKind::File { size: 4 });
        file.modified = modified;
        let file = FromSender::Small { entry: file, hash: hash(b"evil") };
        [(FromSender::Entry(dir), Vec::new()), (file, b"evil".to_vec())]
    });
    script(peer, files.collect());
}

fn larger_than_told(peer: &mut Peer) {
    peer.say(&begin(Sources::One));
    peer.say(&large(0, b"run7/big", SEGMENT).0);
    if let Some(mut object) = peer.object() {
        peer.say(&data(0, object.id().0, &[(0, SEGMENT)]).0);
        for _ in 0..4 {
            write(&mut object, vec![7; SEGMENT as usize]);
        }
        peer.wait(PATIENCE);
    }
}

fn small_that_is_large(peer: &mut Peer) {
    let bytes = vec![7; 900_000];
    let file = entry(0, b"run7/small", EntryKind::File { size: bytes.len() as u64 });
    script(peer, vec![(FromSender::Small { entry: file, hash: hash(&bytes) }, bytes)]);
}

/// Whatever is told of how much there is and how the path is, it is no number to reckon with.
fn figures(peer: &mut Peer) {
    let path = |number: f64| {
        let limited_by = LimitedBy::Link;
        let (sent_packets, lost_packets, resent_bytes) = (u64::MAX, u64::MAX, u64::MAX);
        let (packet, rtt, queue) = (0, number, number);
        let path = PathFigures {
            sent_packets,
            lost_packets,
            resent_bytes,
            packet,
            rtt,
            queue,
            limited_by,
        };
        (FromSender::Path(path), Vec::new())
    };
    let total = |files, bytes| (FromSender::Total { files, bytes }, Vec::new());
    let same = |bytes| (FromSender::Same { bytes }, Vec::new());
    let mut said =
        vec![total(u64::MAX, u64::MAX), same(u64::MAX), same(u64::MAX), same(1), same(9)];
    said.extend([f64::NAN, f64::INFINITY, f64::MIN, -0.0, 1e308].map(path));
    said.extend([total(0, 0), dir(b"run7"), small(b"run7/true"), total(u64::MAX, 0)]);
    script(peer, said);
}

/// Bytes that are never those of the hash, however often they are asked for.
fn wrong_segments(peer: &mut Peer) {
    script(peer, vec![large(0, b"run7/big", 2 * SEGMENT)]);
    let mut again = true;
    while again {
        let Some(mut object) = peer.object() else { return };
        peer.say(&data(0, object.id().0, &[(0, SEGMENT)]).0);
        peer.say(&hashes(0, 0, 1).0);
        write(&mut object, vec![7; SEGMENT as usize]);
        object.finish();
        again = peer.hear().is_some();
    }
}

/// The file comes by another object, and the first one is never finished.
fn object_that_stays_open(peer: &mut Peer) {
    peer.say(&begin(Sources::One));
    peer.say(&dir(b"run7").0);
    peer.say(&large(0, b"run7/big", SEGMENT).0);
    let bytes = vec![7; SEGMENT as usize];
    let open = peer.object();
    if let Some(object) = &open {
        peer.say(&data(0, object.id().0, &[(0, SEGMENT)]).0);
    }
    if let Some(mut object) = peer.object() {
        peer.say(&data(0, object.id().0, &[(0, SEGMENT)]).0);
        let file = hikyaku_transfer::Geometry::new(SEGMENT);
        let hash =
            file.and_then(|f| hikyaku_transfer::SegmentHash::new(f, SegmentIndex(0), &bytes));
        let hashes = hash.into_iter().collect();
        peer.say(&FromSender::Segments { id: EntryId(0), first: SegmentIndex(0), hashes });
        write(&mut object, bytes);
        object.finish();
        peer.say(&read(0).0);
        peer.say(&FromSender::End);
        peer.wait(PATIENCE);
    }
}
