//! Files that are read by the channel of a store.

use super::packets::{CLOSE, FSTAT, LSTAT, OPEN, READ};
use super::{Server, path};
use crate::{Files, Flow};
use hikyaku_store::{
    Asked, Cut, ErrorKind, FetchError, Fetcher, FetcherTraits, Store, Wanted, fetchers,
};
use std::fs;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const MIB: usize = 1 << 20;

fn channel(server: &Server) -> Arc<dyn Fetcher> {
    let store: Arc<dyn Store> = Arc::new(server.open());
    let mut channels = fetchers(&store, 16).unwrap();
    assert_eq!(channels.len(), 1);
    channels.remove(0)
}

fn wanted(server: &Server, name: &str) -> Wanted {
    let found = server.open().look(&path(name)).unwrap();
    Wanted { path: path(name), size: found.size, modified: found.modified, content: None }
}

fn content(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// The segments that come of ranges, and the bytes that were counted.
fn segments(
    channel: &Arc<dyn Fetcher>,
    (file, bytes): (&Wanted, &[u8]),
    (ranges, cut): (&[Range<u64>], &Cut),
) -> (Result<usize, FetchError>, Vec<u32>, u64) {
    let (mut segments, arrived) = (Vec::new(), AtomicU64::new(0));
    let count = |bytes| {
        arrived.fetch_add(bytes, Ordering::Relaxed);
    };
    let done = channel.ranges(file, &Asked::whole(ranges), cut, &count, &mut |segment| {
        let at = segment.index.0 as usize * MIB;
        assert!(segment.bytes == &bytes[at..bytes.len().min(at + MIB)]);
        segments.push(segment.index.0);
    });
    (done, segments, arrived.into_inner())
}

#[test]
fn ranges_of_a_large_file_share_a_handle_and_follow_a_cut() {
    let Some(server) = Server::start(&[]) else { return };
    let bytes = content(6 * MIB + 77);
    fs::write(server.dir.join("f"), &bytes).unwrap();
    let (channel, file, mib) = (channel(&server), wanted(&server, "f"), MIB as u64);
    server.counts.take();
    let (ranges, none) = ([mib..3 * mib, 5 * mib..file.size], Cut::default());
    let got = segments(&channel, (&file, &bytes), (&ranges, &none));
    assert_eq!(got, (Ok(0), vec![1, 2, 5, 6], 3 * mib + 77));
    let rest = [0..mib, 3 * mib..5 * mib];
    assert_eq!(segments(&channel, (&file, &bytes), (&rest, &none)).1, [0, 3, 4]);
    // All bytes were given, so that the file is closed.
    server.counts.wait_for(CLOSE, 1);
    let counts = server.counts.take();
    assert_eq!((counts[&OPEN], counts[&FSTAT], counts[&CLOSE]), (1, 2, 1));
    let cut = Cut::default();
    cut.at(2 * mib);
    let all = 0..file.size;
    assert_eq!(segments(&channel, (&file, &bytes), (std::slice::from_ref(&all), &cut)).1, [0, 1]);
    fs::write(server.dir.join("f"), b"another").unwrap();
    let changed = segments(&channel, (&file, &bytes), (&ranges, &none)).0;
    assert_eq!(changed, Err(FetchError::File(ErrorKind::Changed)));
    let missing = Wanted { path: path("none"), ..file };
    let missing = segments(&channel, (&missing, &bytes), (&ranges, &none)).0;
    assert_eq!(missing, Err(FetchError::File(ErrorKind::NotFound)));
}

#[test]
fn with_a_flow_a_file_is_one_request_and_is_looked_at_behind_its_last_read() {
    let Some(server) = Server::start(&[]) else { return };
    let bytes = content(6 * MIB + 77);
    fs::write(server.dir.join("f"), &bytes).unwrap();
    let flow = Flow { bytes: 100_000, requests: 16, files: Files::Several };
    let store: Arc<dyn Store> = Arc::new(server.open().with_flow(flow));
    let channel = fetchers(&store, 1).unwrap().remove(0);
    assert_eq!(channel.traits().request_bytes, Some(FetcherTraits::WHOLE_FILE));
    let (file, none) = (wanted(&server, "f"), Cut::default());
    let all = 0..file.size;
    let all = std::slice::from_ref(&all);
    server.counts.take();
    let got = segments(&channel, (&file, &bytes), (all, &none));
    assert_eq!(got, (Ok(0), (0..=6).collect(), file.size));
    server.counts.wait_for(CLOSE, 1);
    let reads = bytes.len().div_ceil(100_000);
    let wanted = [(OPEN, 1), (READ, reads), (FSTAT, 1), (CLOSE, 1)];
    assert_eq!(server.counts.take(), wanted.into());
    fs::write(server.dir.join("f"), [&bytes[..], b"more"].concat()).unwrap();
    let got = segments(&channel, (&file, &bytes), (all, &none));
    assert_eq!((got.0, got.1), (Err(FetchError::File(ErrorKind::Changed)), (0..6).collect()));
}

#[test]
fn a_file_that_grows_while_it_is_read_gives_no_last_segment() {
    let Some(server) = Server::start(&[]) else { return };
    let bytes = content(2 * MIB);
    fs::write(server.dir.join("f"), &bytes).unwrap();
    let (channel, file) = (channel(&server), wanted(&server, "f"));
    let grown = [&bytes[..], b"more"].concat();
    fs::write(server.dir.join("f"), &grown).unwrap();
    let all = 0..file.size;
    let got = segments(&channel, (&file, &bytes), (std::slice::from_ref(&all), &Cut::default()));
    assert_eq!((got.0, got.1), (Err(FetchError::File(ErrorKind::Changed)), vec![0]));
}

#[test]
fn small_files_need_three_requests_each_and_fail_by_themselves() {
    let Some(server) = Server::start(&[]) else { return };
    let sizes = [0, 1, 32 * 1024, 32 * 1024 + 1, 64 * 1024];
    let names: Vec<String> = (0..300).map(|number| format!("f{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        fs::write(server.dir.join(name), content(sizes[number % sizes.len()])).unwrap();
    }
    let channel = channel(&server);
    let mut files: Vec<Wanted> = names.iter().map(|name| wanted(&server, name)).collect();
    files[7].path = path("none");
    fs::write(server.dir.join("f11"), b"more").unwrap();
    server.counts.take();
    let wanted: Vec<&Wanted> = files.iter().collect();
    let mut got = vec![None; files.len()];
    let mut each = |at: usize, content| got[at] = Some(content);
    channel.small(&wanted, &Cut::default(), &|_| (), &mut each).unwrap();
    for (number, got) in got.into_iter().enumerate() {
        match number {
            7 => assert_eq!(got, Some(Err(ErrorKind::NotFound))),
            11 => assert_eq!(got, Some(Err(ErrorKind::Changed))),
            _ => assert!(got == Some(Ok(content(sizes[number % sizes.len()]))), "{number}"),
        }
    }
    server.counts.wait_for(CLOSE, 299);
    let counts = server.counts.take();
    assert_eq!((counts[&OPEN], counts[&CLOSE]), (300, 299));
    assert!(counts[&READ] <= 300 * 2, "{counts:?}");
    // The reason of the missing one.
    assert_eq!(counts.get(&LSTAT), Some(&1));
    let cut = Cut::default();
    cut.at(0);
    let mut each = |at: usize, _| panic!("{at} is not wanted");
    channel.small(&wanted, &cut, &|_| (), &mut each).unwrap();
}

#[test]
fn a_file_of_proc_has_bytes_and_no_size() {
    let Some(server) = Server::start(&[]) else { return };
    let store = hikyaku_store::Store::look;
    let proc = crate::Sftp::open(server.client.clone(), b"/proc/self").unwrap();
    let found = store(&proc, &path("cmdline")).unwrap();
    assert_eq!(found.size, 0);
    let proc: Arc<dyn Store> = Arc::new(proc);
    let file = Wanted { path: path("cmdline"), size: 0, modified: found.modified, content: None };
    let mut got = None;
    let mut each = |_, content| got = Some(content);
    let channels = fetchers(&proc, 1).unwrap();
    channels[0].small(&[&file], &Cut::default(), &|_| (), &mut each).unwrap();
    assert!(got.unwrap().unwrap().starts_with(super::SERVER.as_bytes()));
}

#[test]
fn a_lost_connection_is_not_a_failure_of_a_file() {
    let Some(server) = Server::start(&[]) else { return };
    fs::write(server.dir.join("f"), content(2 * MIB)).unwrap();
    let (channel, file) = (channel(&server), wanted(&server, "f"));
    server.client.abandon();
    let all = 0..file.size;
    let ranges =
        channel.ranges(&file, &Asked::whole(&[all]), &Cut::default(), &|_| (), &mut |_| ());
    assert!(matches!(ranges, Err(FetchError::Lost(_))), "{ranges:?}");
    let small = channel.small(&[&file], &Cut::default(), &|_| (), &mut |_, _| ());
    assert!(matches!(small, Err(FetchError::Lost(_))), "{small:?}");
    assert!(!channel.is_alive());
}
