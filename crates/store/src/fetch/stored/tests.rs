//! Channels of a store in memory.

use super::*;
use crate::found::Time;
use crate::memory::Memory;
use crate::store::{Finish, Make, Naming};

const MIB: u64 = 1 << 20;

fn put(store: &dyn Store, name: &str, bytes: &[u8], secs: i64) -> Wanted {
    let path = StorePath::new(name.as_bytes()).unwrap();
    let draft = store.create(&path, &Make::default()).unwrap();
    draft.write_at(0, bytes).unwrap();
    let modified = Time { secs, nanos: 0 };
    let finish = Finish { modified: Some(modified), ..Finish::default() };
    let found = draft.name(Naming::Replace, &finish).unwrap();
    let content = found.version.map(Into::into);
    Wanted { path, size: found.size, modified, content }
}

/// Segments by their number.
type Segments = Vec<(u32, Vec<u8>)>;

/// The segments that come of ranges, and the result.
fn read(
    fetcher: &dyn Fetcher,
    file: &Wanted,
    ranges: &[Range<u64>],
    cut: &Cut,
) -> (Segments, Result<usize, FetchError>) {
    let mut came = Vec::new();
    let done = fetcher.ranges(file, &Asked::whole(ranges), cut, &|_| {}, &mut |segment| {
        came.push((segment.index.0, segment.bytes.to_vec()));
    });
    (came, done)
}

#[test]
fn ranges_come_as_segments_until_they_end_or_are_cut() {
    let bytes: Vec<u8> = (0..3 * MIB + 7).map(|at| (at % 251) as u8).collect();
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let file = put(&*store, "f", &bytes, 1);
    let fetcher = &*fetchers(&store, 1).unwrap()[0];
    let all = [0..MIB, 2 * MIB..3 * MIB + 7];
    let (came, done) = read(fetcher, &file, &all, &Cut::default());
    assert_eq!(done, Ok(0));
    let parts: Vec<(u32, &[u8])> = came.iter().map(|(at, part)| (*at, part.as_slice())).collect();
    let part = |at: u64, end: u64| &bytes[at as usize..end as usize];
    let wanted = [(0, part(0, MIB)), (2, part(2 * MIB, 3 * MIB)), (3, part(3 * MIB, 3 * MIB + 7))];
    assert!(parts == wanted);
    let cut = Cut::default();
    cut.at(MIB);
    let (came, done) = read(fetcher, &file, &all, &cut);
    assert_eq!((came.len(), done), (1, Ok(0)));
    fetcher.close("");
    let (_, done) = read(fetcher, &file, &all, &Cut::default());
    assert!(matches!(done, Err(FetchError::Lost(_))), "{done:?}");
}

#[test]
fn another_content_is_refused_by_its_version_or_else_by_size_and_time() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let fetcher = &*fetchers(&store, 1).unwrap()[0];
    let first = put(&*store, "f", b"one", 1);
    let (of_version, of_time) = (first.clone(), Wanted { content: None, ..first });
    let small = |file: &Wanted| {
        let mut came = None;
        fetcher
            .small(&[file], &Cut::default(), &|_| {}, &mut |_, content| came = Some(content))
            .unwrap();
        came.unwrap()
    };
    for file in [&of_version, &of_time] {
        assert_eq!(small(file), Ok(b"one".to_vec()));
    }
    let changed = Err(FetchError::File(ErrorKind::Changed));
    // The version differs; size and time are equal.
    put(&*store, "f", b"two", 1);
    assert_eq!(small(&of_version), Err(ErrorKind::Changed));
    assert_eq!(
        read(fetcher, &of_version, std::slice::from_ref(&(0..3)), &Cut::default()),
        (vec![], changed.clone())
    );
    put(&*store, "f", b"two", 2);
    assert_eq!(small(&of_time), Err(ErrorKind::Changed));
    assert_eq!(read(fetcher, &of_time, std::slice::from_ref(&(0..3)), &Cut::default()).1, changed);
}
