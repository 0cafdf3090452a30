//! Both ends in one process, over the loopback: trees arrive as they were, whatever is in them.

mod flood;
mod hostile;
mod kinds;
mod lies;
mod list;
mod sizes;
mod sources;
mod streams;
mod swap;

use super::*;
use crate::fault::Fault;
use crate::flush::SyncEvery;
use crate::receive::{Writing, receive};
use crate::send::send;
use crate::session::MOST_OBJECTS;
use hikyaku_crypto::{Identity, Secret, ServerCredentials, Trust};
use hikyaku_job::{Allowed, Claimant, Meter, Tally};
use hikyaku_net::blocking::block_on;
use hikyaku_net::{ConnectConfig, Endpoint, EndpointConfig, Listener, ListenerConfig, OnDrop};
use hikyaku_reach::{Connection, In, Out, Writer, talk};
use hikyaku_transfer::{Attributes, Depth, Existing, Links, Preserve, Resume, Rules};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::thread;

/// A directory that is gone when the test is over.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hikyaku-pair-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn random(seed: u64, len: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..len).map(|_| rng.u8(..)).collect()
}

/// The result of a copy: the errors of both ends, and the failures.
#[derive(Debug)]
struct Outcome {
    sender: Option<String>,
    receiver: Option<String>,
    failures: Vec<String>,
    tally: Tally,
}

/// One end of a pair.
struct Half {
    connection: Connection,
    incoming: In,
    outgoing: Out,
    writer: Writer,
}

/// Runs both halves of a connection: the first accepted, the second dialled.
fn pair<A: Send, B>(far: impl FnOnce(Half) -> A + Send, near: impl FnOnce(Half) -> B) -> (A, B) {
    let (identity, secret) = (Identity::generate().unwrap(), Secret::generate());
    let mut config = ListenerConfig::new(ServerCredentials::new(&identity));
    config.secret = Some(secret.clone());
    config.endpoint.on_drop = OnDrop::Wait;
    config.transport.max_streams = MOST_OBJECTS;
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
    let address = listener.local_addr();
    let half = |connection: Connection, stream| {
        let (incoming, outgoing, writer) = talk(stream).unwrap();
        Half { connection, incoming, outgoing, writer }
    };
    thread::scope(|scope| {
        let far = scope.spawn(|| {
            let connection = Connection::from(block_on(listener.accept()).unwrap());
            let stream = block_on(connection.accept_stream()).unwrap();
            far(half(connection, stream))
        });
        let mut config = EndpointConfig::default();
        config.on_drop = OnDrop::Wait;
        let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), config).unwrap();
        let mut config = ConnectConfig::new(Trust::Pinned(identity.fingerprint()));
        config.secret = Some(secret.clone());
        config.transport.max_streams = MOST_OBJECTS;
        let connection = Connection::from(block_on(endpoint.connect(address, config)).unwrap());
        let stream = block_on(connection.open_stream()).unwrap();
        let near = near(half(connection.clone(), stream));
        connection.close(hikyaku_net::code::DONE, "");
        (far.join().unwrap(), near)
    })
}

/// Does the work of one end; gives its error.
fn work(
    half: Half,
    options: &Options,
    allowed: &Allowed,
    meter: &Meter,
    work: impl FnOnce(Ends<'_>),
) -> Option<String> {
    let Half { connection, incoming, outgoing, writer } = half;
    let fault = Fault::new(vec![connection.clone()]);
    work(Ends {
        claims: Claimant::only(),
        connection: &connection,
        incoming,
        outgoing,
        fault: &fault,
        meter,
        options,
        allowed,
    });
    let _ = writer.join();
    fault.take().map(|cause| cause.one_line())
}

/// Failures as lines for a person.
fn lines(meter: &Meter) -> Vec<String> {
    meter.take_failures().iter().map(|told| told.line(None)).collect()
}

/// As a near end writes, in small steps to the disk.
const WRITING: Writing = Writing {
    descriptors: Descriptors::Users,
    sync_every: SyncEvery { bytes: 256 << 20, time: std::time::Duration::from_millis(50) },
    places: 30,
};

fn copy(sources: &[PathBuf], target: &Path, options: &Options) -> Outcome {
    let (meter, far, any) = (Meter::default(), Meter::default(), Allowed::anything());
    let (receiver, sender) = pair(
        |half| work(half, options, &any, &far, |ends| receive(ends, target, WRITING)),
        |half| {
            let roots = Roots::new(sources, &options.files, Descriptors::Users);
            work(half, options, &any, &meter, |ends| send(ends, &roots))
        },
    );
    Outcome { sender, receiver, failures: lines(&meter), tally: meter.tally() }
}

fn recursive() -> Options {
    Options {
        rules: Rules {
            depth: Depth::Tree,
            preserve: Preserve::All,
            resume: Resume::Fresh,
            ..Rules::default()
        },
        ..Options::default()
    }
}

/// Every name below, with its content or target.
fn listing(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    let mut open = vec![root.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_path_buf();
            if path.is_dir() {
                all.push((name, b"dir".to_vec()));
                open.push(path);
            } else {
                all.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn a_tree_arrives_as_it_was() {
    let scratch = Scratch::new("tree");
    let tree = scratch.at("run7");
    fs::create_dir_all(tree.join("deep/er/empty")).unwrap();
    for (at, len) in [0, 1, 1000, 256 << 10, (256 << 10) + 1, 1 << 20, 5_000_001].iter().enumerate()
    {
        fs::write(tree.join(format!("deep/{len}")), random(at as u64, *len)).unwrap();
    }
    for n in 0..500 {
        fs::write(tree.join(format!("deep/er/{n}")), random(n, n as usize)).unwrap();
    }
    fs::write(tree.join("odd \n\u{1b}[2J name"), b"x").unwrap();
    fs::set_permissions(tree.join("deep/1"), fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(scratch.at("into")).unwrap();
    let outcome = copy(std::slice::from_ref(&tree), &scratch.at("into"), &recursive());
    assert_eq!((&outcome.sender, &outcome.receiver), (&None, &None), "{outcome:?}");
    assert_eq!(outcome.failures, Vec::<String>::new());
    assert_eq!(outcome.tally.files, 508);
    assert!(listing(&tree) == listing(&scratch.at("into/run7")));
    let meta =
        |path: PathBuf| fs::metadata(path).map(|m| (m.mode(), m.mtime(), m.mtime_nsec())).unwrap();
    for name in ["deep/1", "deep/5000001", "deep/er", ""] {
        assert_eq!(meta(tree.join(name)), meta(scratch.at("into/run7").join(name)), "{name}");
    }
}

#[test]
fn one_file_gets_the_targets_name_and_replaces_it_at_once() {
    let scratch = Scratch::new("one");
    fs::write(scratch.at("a"), random(1, 3_000_000)).unwrap();
    fs::write(scratch.at("b"), b"old").unwrap();
    let held = fs::File::open(scratch.at("b")).unwrap();
    let outcome = copy(&[scratch.at("a")], &scratch.at("b"), &Options::default());
    assert_eq!((outcome.sender, outcome.receiver), (None, None));
    assert!(fs::read(scratch.at("b")).unwrap() == random(1, 3_000_000));
    assert_eq!(std::io::read_to_string(held).unwrap(), "old", "the old file was not written to");
    let names: Vec<_> = fs::read_dir(&scratch.0).unwrap().collect();
    assert_eq!(names.len(), 2, "nothing else is left: {names:?}");
}

#[test]
fn one_bad_file_does_not_stop_the_others() {
    let scratch = Scratch::new("bad");
    let tree = scratch.at("t");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("a"), b"a").unwrap();
    fs::write(tree.join("z"), b"z").unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        tree.join("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    // A directory has the name of a file.
    fs::create_dir_all(scratch.at("into/t/z/x")).unwrap();
    let outcome = copy(&[tree], &scratch.at("into"), &recursive());
    assert_eq!((&outcome.sender, &outcome.receiver), (&None, &None));
    assert_eq!(outcome.failures.len(), 2, "{outcome:?}");
    assert_eq!(fs::read(scratch.at("into/t/a")).unwrap(), b"a");
}

// spec: copy-close-1
#[test]
fn a_target_that_cannot_be_is_an_error_at_both_ends() {
    let scratch = Scratch::new("nowhere");
    fs::write(scratch.at("a"), b"a").unwrap();
    let outcome = copy(&[scratch.at("a")], &scratch.at("no/such/dir"), &Options::default());
    assert!(outcome.receiver.unwrap().contains("mkdir -p"));
    assert!(outcome.sender.is_some());
}

#[test]
fn what_is_there_may_stay() {
    let scratch = Scratch::new("stay");
    fs::write(scratch.at("a"), b"new").unwrap();
    fs::write(scratch.at("b"), b"old").unwrap();
    let options = Options {
        rules: Rules { existing: Existing::Kept, ..Rules::default() },
        ..Options::default()
    };
    let outcome = copy(&[scratch.at("a")], &scratch.at("b"), &options);
    assert_eq!(fs::read(scratch.at("b")).unwrap(), b"old");
    let Tally { files, bytes, kept_bytes, total_bytes, .. } = outcome.tally;
    assert_eq!((files, bytes, kept_bytes, total_bytes), (1, 3, 3, 3), "it is counted");
    fs::write(scratch.at("big"), random(1, 1_000_000)).unwrap();
    let outcome = copy(&[scratch.at("big")], &scratch.at("b"), &options);
    assert_eq!((outcome.tally.files, outcome.tally.kept_bytes), (1, 1_000_000));
}

#[test]
fn any_number_of_large_files_may_stay() {
    let scratch = Scratch::new("stay-many");
    let tree = scratch.at("t");
    fs::create_dir_all(&tree).unwrap();
    fs::create_dir_all(scratch.at("into/t")).unwrap();
    for n in 0..60 {
        let file = fs::File::create(tree.join(format!("{n:03}"))).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, &[1; 300_000], 0).unwrap();
        fs::write(scratch.at("into/t").join(format!("{n:03}")), b"old").unwrap();
    }
    fs::write(tree.join("last"), random(1, 400_000)).unwrap();
    let options =
        Options { rules: Rules { existing: Existing::Kept, ..recursive().rules }, ..recursive() };
    let outcome = copy(std::slice::from_ref(&tree), &scratch.at("into"), &options);
    assert_eq!((&outcome.sender, &outcome.receiver), (&None, &None), "{outcome:?}");
    assert_eq!(outcome.tally.files, 61);
    assert!(fs::read(scratch.at("into/t/last")).unwrap() == random(1, 400_000));
}

#[test]
fn a_large_file_that_cannot_be_made_does_not_dam_the_others_up() {
    let scratch = Scratch::new("dam");
    let tree = scratch.at("t");
    fs::create_dir(&tree).unwrap();
    for (name, seed) in [("a", 1), ("b", 2), ("c", 3)] {
        fs::write(tree.join(name), random(seed, 40_000_000)).unwrap();
    }
    fs::create_dir_all(scratch.at("into/t/b/x")).unwrap();
    let outcome = copy(std::slice::from_ref(&tree), &scratch.at("into"), &recursive());
    assert_eq!((&outcome.sender, &outcome.receiver), (&None, &None));
    assert_eq!(outcome.failures.len(), 1, "{outcome:?}");
    for name in ["a", "c"] {
        assert!(
            fs::read(tree.join(name)).unwrap()
                == fs::read(scratch.at("into/t").join(name)).unwrap()
        );
    }
}
