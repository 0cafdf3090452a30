//! The conformance suite with OpenSSH's server, and tests of the number of requests and of
//! servers that lie.

mod fetching;
mod lying;
mod packets;

use crate::Sftp;
use hikyaku_sftp::Client;
use hikyaku_store::testing::{Rig, failures};
use hikyaku_store::{
    Ability, Change, ErrorKind, Finish, Last, Make, Naming, Op, Put, Reply, Store, StorePath, Time,
};
use hikyaku_transfer::Durable;
use packets::{Counted, Counts};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

const SERVER: &str = "/usr/lib/openssh/sftp-server";
/// Every extension that the server has and this store uses.
const EXTENSIONS: &str = "posix-rename,statvfs,fsync,lsetstat,limits";

/// A server with a directory, which is removed at the end.
struct Server {
    dir: PathBuf,
    child: Child,
    client: Client,
    counts: Counts,
}

impl Server {
    /// `None` if OpenSSH's server is not installed. It is started with these options.
    fn start(options: &[&str]) -> Option<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        if !Path::new(SERVER).exists() {
            println!("SKIPPED: no {SERVER}");
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hikyaku-store-sftp-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).unwrap();
        let mut command = Command::new(SERVER);
        command.args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let counts = Counts::default();
        let client = Client::start(output, Counted::new(input, &counts)).unwrap();
        Some(Self { dir, child, client, counts })
    }

    fn open(&self) -> Sftp {
        Sftp::open(self.client.clone(), self.dir.as_os_str().as_encoded_bytes()).unwrap()
    }
}

impl Rig for Server {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.open())
    }

    fn seeds(&self) -> u64 {
        10
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

fn why<T>(result: hikyaku_store::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}

#[test]
fn a_directory_of_a_server_conforms() {
    if Server::start(&[]).is_none() {
        return;
    }
    let failed = failures(|| Server::start(&[]).unwrap());
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn a_path_is_followed_by_the_server_and_stays_below_the_root() {
    let Some(server) = Server::start(&[]) else { return };
    let dir = server.dir.canonicalize().unwrap();
    fs::create_dir_all(dir.join("d/e")).unwrap();
    fs::write(dir.join("d/e/f"), "12345").unwrap();
    for (at, text) in [("l", "d/e"), ("d/up", ".."), ("none", "nothing"), ("self", "self")] {
        symlink(text, dir.join(at)).unwrap();
    }
    symlink("/etc", dir.join("away")).unwrap();
    let store = Sftp::open(server.client.clone(), dir.as_os_str().as_encoded_bytes()).unwrap();
    let follow =
        |at: &str| store.follow(&path(at)).map(|(path, found)| (path.to_string(), found.size));
    assert_eq!(follow("l/f").unwrap(), ("d/e/f".to_owned(), 5));
    assert_eq!(follow("d/up").unwrap().0, ".");
    assert_eq!(follow("d/up/l/f").unwrap().0, "d/e/f");
    for (at, kind) in
        [("none", ErrorKind::NotFound), ("self", ErrorKind::Link), ("away", ErrorKind::Link)]
    {
        assert_eq!(why(follow(at)), Some(kind), "{at}");
    }
    let typed = |below: &str| [dir.as_os_str().as_encoded_bytes(), below.as_bytes()].concat();
    let of = |below: &str, last| store.path_of(&typed(below), last).map(|path| path.to_string());
    for (below, last, wanted) in [
        ("/l", Last::Followed, "d/e"),
        ("/l", Last::Kept, "l"),
        ("/d/up/l", Last::Kept, "l"),
        ("/d/up/new", Last::Kept, "new"),
        ("/d/e/new", Last::Followed, "d/e/new"),
        ("/d/..", Last::Kept, "."),
    ] {
        assert_eq!(of(below, last), Ok(wanted.to_owned()), "{below}");
    }
    assert_eq!(of("/no/new", Last::Kept), Err(ErrorKind::NotFound));
    assert_eq!(store.path_of(b"/etc", Last::Kept), Err(ErrorKind::BadName));
}

#[test]
fn new_files_have_the_umask_of_the_server_unless_bits_are_named() {
    let Some(server) = Server::start(&["-u", "027"]) else { return };
    let store = server.open();
    let modified = Some(Time { secs: 1_234_567_890, nanos: 0 });
    for (mode, made, wanted) in [
        (None, Some(0o666), 0o640),
        (None, Some(0o777), 0o750),
        // This user can open a draft again, and the file has the bits of its source.
        (None, Some(0o444), 0o440),
        (None, Some(0o4755), 0o750),
        (Some(0o666), None, 0o666),
        (None, None, 0o644),
    ] {
        let finish = Finish { mode, made, modified, ..Finish::default() };
        let draft = store.create(&path("draft"), &Make { mode: made, ..Make::default() }).unwrap();
        draft.write_at(0, b"content").unwrap();
        let named = draft.name(Naming::Replace, &finish).unwrap();
        let (bytes, naming, durable) = (b"content", Naming::Replace, Durable::Cache);
        let put = Op::Put(Put { path: &path("put"), bytes, naming, finish: &finish, durable });
        let mut reply = None;
        store.batch(&[put], &mut |_, done| reply = Some(done.unwrap()));
        let Some(Reply::Found(put)) = reply else { panic!("{reply:?}") };
        for (name, found) in [("draft", named), ("put", put)] {
            let mode = fs::metadata(server.dir.join(name)).unwrap().mode() & 0o7777;
            assert_eq!((mode, found.mode), (wanted, wanted), "{name}: {finish:?}");
        }
    }
}

/// Such a server neither replaces a file by a rename nor sets the time of a link. All else conforms.
#[test]
fn a_server_without_extensions_lacks_two_abilities() {
    if Server::start(&[]).is_none() {
        return;
    }
    let failed = failures(|| Server::start(&["-P", EXTENSIONS]).unwrap());
    // The reason of a thread that has panicked is not reported, and an old file stays.
    let lacking =
        ["Exists", "Unsupported(Times)", "a scoped thread panicked", "left: [Some(1), Some(1)]"];
    let is_lacking = |reason: &&String| !lacking.iter().any(|words| reason.contains(words));
    let others: Vec<_> = failed.iter().filter(is_lacking).collect();
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn without_extensions_an_existing_file_stays() {
    let Some(server) = Server::start(&["-P", EXTENSIONS]) else { return };
    let store = server.open();
    fs::write(server.dir.join("old"), "old").unwrap();
    let put = |at: &str| {
        let draft = store.create(&path(at), &Make::default()).unwrap();
        draft.write_at(0, b"new").unwrap();
        draft.sync().unwrap();
        draft.name(Naming::Replace, &Finish::default())
    };
    assert_eq!(why(put("old")), Some(ErrorKind::Exists));
    assert_eq!(fs::read_to_string(server.dir.join("old")).unwrap(), "old");
    put("new").unwrap();
    assert_eq!(fs::read_to_string(server.dir.join("new")).unwrap(), "new");
    // No draft is left.
    assert_eq!(fs::read_dir(&server.dir).unwrap().count(), 2);
    assert_eq!(why(store.space()), Some(ErrorKind::Unsupported(Ability::Space)));
}

#[test]
fn a_change_does_not_follow_a_link() {
    for options in [&[][..], &["-P", "lsetstat"]] {
        let Some(server) = Server::start(options) else { return };
        let store = server.open();
        let file = server.dir.join("file");
        fs::write(&file, "x").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink("file", server.dir.join("link")).unwrap();
        let before = fs::metadata(&file).unwrap();
        let mode = Change { mode: Some(0o777), ..Change::default() };
        let lacks = Some(ErrorKind::Unsupported(Ability::Modes));
        assert_eq!(why(store.change(&path("link"), &mode)), lacks, "{options:?}");
        let modified = Some(Time { secs: 7, nanos: 0 });
        let time = Change { modified, ..Change::default() };
        let changed = why(store.change(&path("link"), &time));
        let lacks = (!options.is_empty()).then_some(ErrorKind::Unsupported(Ability::Times));
        assert_eq!(changed, lacks, "{options:?}");
        let after = fs::metadata(&file).unwrap();
        assert_eq!((after.mode(), after.mtime()), (before.mode(), before.mtime()), "{options:?}");
        store.change(&path("file"), &mode).unwrap();
        store.change(&path("file"), &time).unwrap();
        let after = fs::metadata(&file).unwrap();
        assert_eq!((after.mode() & 0o7777, after.mtime()), (0o777, 7), "{options:?}");
    }
}

/// A directory that was used before becomes a link by the store itself.
#[test]
fn a_directory_that_was_replaced_by_a_link_is_not_used() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.open();
    for dir in ["d", "d/e", "other", "other/e"] {
        store.make_dir(&path(dir), 0o755).unwrap();
    }
    assert!(store.look(&path("d/e")).is_ok());
    store.rename(&path("d"), &path("moved"), hikyaku_store::Replace::Allowed).unwrap();
    store.make_link(&path("d"), b"other").unwrap();
    assert_eq!(why(store.create(&path("d/f"), &Make::default())), Some(ErrorKind::Link));
    assert_eq!(why(store.create(&path("d/e/f"), &Make::default())), Some(ErrorKind::Link));
}

#[test]
fn a_time_that_the_protocol_does_not_have_is_refused_and_read() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.open();
    let file = server.dir.join("file");
    fs::write(&file, "x").unwrap();
    let early = std::time::UNIX_EPOCH - std::time::Duration::from_secs(86_400 * 1000);
    fs::File::options().write(true).open(&file).unwrap().set_modified(early).unwrap();
    let found = store.look(&path("file")).unwrap();
    assert_eq!(found.modified.secs, -86_400_000);
    let change = Change { modified: Some(found.modified), ..Change::default() };
    let lacks = Some(ErrorKind::Unsupported(Ability::Times));
    assert_eq!(why(store.change(&path("file"), &change)), lacks);
    assert_eq!(store.abilities().clock.kept(found.modified), None);
}

#[test]
fn a_root_that_is_no_directory_is_refused() {
    let Some(server) = Server::start(&[]) else { return };
    fs::write(server.dir.join("file"), "x").unwrap();
    let open = |name: &str| {
        let root = server.dir.join(name);
        why(Sftp::open(server.client.clone(), root.as_os_str().as_encoded_bytes()))
    };
    assert_eq!(open("file"), Some(ErrorKind::NotDir));
    assert_eq!(open("none"), Some(ErrorKind::NotFound));
    symlink(".", server.dir.join("link")).unwrap();
    assert_eq!(open("link"), None);
}
