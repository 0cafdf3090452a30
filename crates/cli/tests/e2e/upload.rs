//! Copies to daemons: `hikyaku serve --root --writable` and `hikyaku cp FILE hikyaku://HOST,HOST/PATH`.

use crate::common::daemon::{Client, Daemon, said};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Daemons that may be written to, each with a root of its own.
struct Servers {
    daemons: Vec<Daemon>,
    roots: Vec<PathBuf>,
    keys: PathBuf,
}

impl Servers {
    fn start(client: &Client, count: usize) -> Self {
        let keys = client.authorized("keys", "");
        let roots: Vec<_> = (0..count).map(|n| client.at(&format!("root{n}"))).collect();
        let start = |root: &PathBuf| {
            fs::create_dir_all(root).unwrap();
            Daemon::start_with(client, root, &keys, &["--writable"])
        };
        Self { daemons: roots.iter().map(start).collect(), roots, keys }
    }

    /// The address of this path on all of them.
    fn at(&self, path: &str) -> String {
        let hosts: Vec<_> = self.daemons.iter().map(|daemon| daemon.address.clone()).collect();
        format!("hikyaku://{}/{path}", hosts.join(","))
    }
}

/// A tree with files of many sizes.
fn tree(at: &Path) {
    fs::create_dir_all(at.join("deep/empty")).unwrap();
    let mut rng = fastrand::Rng::with_seed(7);
    for n in 0..60 {
        let size = [0, 1, 10_000, 262_144, 262_145, 3_000_000][n % 6];
        let bytes: Vec<u8> = (0..size).map(|_| rng.u8(..)).collect();
        fs::write(at.join("deep").join(format!("{n} ü")), bytes).unwrap();
    }
    fs::set_permissions(at.join("deep/1 ü"), fs::Permissions::from_mode(0o4751)).unwrap();
    symlink("1 ü", at.join("deep/link")).unwrap();
}

/// What there is below a directory: contents of files with their times, texts of links, directories.
fn found(at: &Path) -> BTreeMap<PathBuf, (String, Vec<u8>)> {
    let mut all = BTreeMap::new();
    let mut dirs = vec![at.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            let what = if meta.is_dir() {
                dirs.push(path.clone());
                ("a directory".to_owned(), Vec::new())
            } else if meta.is_symlink() {
                let text = fs::read_link(&path).unwrap();
                (format!("a link to {}", text.display()), Vec::new())
            } else {
                (format!("{}.{}", meta.mtime(), meta.mtime_nsec()), fs::read(&path).unwrap())
            };
            all.insert(path.strip_prefix(at).unwrap().to_owned(), what);
        }
    }
    all
}

fn cp(client: &Client, arguments: &[&str]) -> Output {
    client.run(&[&["cp"], arguments].concat())
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_tree_goes_to_three_daemons_and_comes_back() {
    let client = Client::new("upload-three");
    let (servers, source) = (Servers::start(&client, 3), client.at("run7"));
    tree(&source);
    let flat = cp(&client, &[text(&source), &servers.at("")]);
    assert_eq!(flat.status.code(), Some(6), "{}", said(&flat));
    assert!(said(&flat).contains("-r was not given"), "{}", said(&flat));
    for files in [60, 0] {
        let copied = cp(&client, &["-a", "--json", text(&source), &servers.at("")]);
        assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
        let events = String::from_utf8_lossy(&copied.stdout).into_owned();
        let end = events.lines().last().unwrap().to_owned();
        assert!(end.contains(&format!("\"files\":{files},")), "{end}");
    }
    let back = client.at("back");
    let copied = cp(&client, &["-a", &servers.at("run7"), text(&back)]);
    assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
    let wanted = found(&source);
    assert!(found(&back) == wanted);
    // Each server has a part, and nothing else.
    let parts: Vec<_> = servers.roots.iter().map(|root| found(&root.join("run7"))).collect();
    let files = |part: &BTreeMap<PathBuf, (String, Vec<u8>)>| {
        part.values().filter(|(what, _)| what.as_bytes()[0].is_ascii_digit()).count()
    };
    let counts: Vec<usize> = parts.iter().map(files).collect();
    assert_eq!(counts.iter().sum::<usize>(), 60, "{counts:?}");
    assert!(counts.iter().filter(|count| **count > 0).count() > 1, "{counts:?}");
    for (path, what) in parts.iter().flatten() {
        assert_eq!(wanted.get(path).unwrap().0, what.0, "{}", path.display());
    }
    let modes =
        servers.roots.iter().filter_map(|root| fs::metadata(root.join("run7/deep/1 ü")).ok());
    assert!(modes.into_iter().all(|meta| meta.mode() & 0o7777 == 0o751), "no set-id bits");
}

#[test]
fn the_target_means_what_it_means_to_scp() {
    let client = Client::new("upload-rules");
    let servers = Servers::start(&client, 2);
    let (a, b, dir) = (client.at("a"), client.at("b"), client.at("dir"));
    fs::write(&a, "of a").unwrap();
    // Of another size, since a file of the same size and time is not sent.
    fs::write(&b, "of b!").unwrap();
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("c"), "of c").unwrap();
    fs::create_dir(servers.roots[1].join("there")).unwrap();
    symlink(&a, client.at("link")).unwrap();
    let (a, b, dir, link) = (text(&a), text(&b), text(&dir), client.at("link"));
    let contents = format!("{dir}/.");
    let has = |path: &str, wanted: &str| {
        let mut all =
            servers.roots.iter().filter_map(|root| fs::read_to_string(root.join(path)).ok());
        assert_eq!(all.next().as_deref(), Some(wanted), "{path}");
        assert_eq!(all.next(), None, "{path} on one server");
    };
    for (words, made) in [
        (&[a][..], ("", "a", "of a")),
        (&[a], ("new", "new", "of a")),
        (&[b], ("new", "new", "of b!")),
        (&[a, b], ("there", "there/b", "of b!")),
        (&[a], ("there/", "there/a", "of a")),
        (&["-r", dir], ("there", "there/dir/c", "of c")),
        (&["-r", dir], ("named", "named/c", "of c")),
        (&["-r", &contents], ("there", "there/c", "of c")),
        (&[text(&link)], ("there", "there/link", "of a")),
    ] {
        let target = servers.at(made.0);
        let copied = cp(&client, &[words, &[&target]].concat());
        assert_eq!(copied.status.code(), Some(0), "{words:?} {target}: {}", said(&copied));
        has(made.1, made.2);
    }
    for (words, target, message) in [
        (&[a, b][..], "absent", "several sources need one"),
        (&[a], "absent/a", "there is no directory 'absent'"),
        (&["-r", dir], "new", "is not a directory"),
        (&[a, b], "new", "is not a directory"),
        (&[a], "../a", "../a: "),
        (&["absent"], "", "no such file"),
        (&["--verify", a], "", "--verify is not possible"),
        (&[a, a], "there", "another source has this name"),
    ] {
        let refused = cp(&client, &[words, &[&servers.at(target)]].concat());
        assert_ne!(refused.status.code(), Some(0), "{words:?} {target}");
        assert!(said(&refused).contains(message), "{words:?} {target}: {}", said(&refused));
    }
    assert!(!servers.roots.iter().any(|root| root.join("absent").exists()));
}

#[test]
fn holes_stay_holes_on_the_way_to_a_daemon_to_another_one_and_back() {
    let client = Client::new("upload-holes");
    let servers = Servers::start(&client, 2);
    let at = |server: usize| format!("hikyaku://{}/f", servers.daemons[server].address);
    let (source, back) = (client.at("sparse"), client.at("back"));
    let mut bytes = vec![0; 48 << 20];
    let data = vec![7; 1 << 20];
    let file = File::create(&source).unwrap();
    for at in [5 << 20, 40 << 20] {
        bytes[at..at + data.len()].copy_from_slice(&data);
        file.write_all_at(&data, at as u64).unwrap();
    }
    file.set_len(bytes.len() as u64).unwrap();
    let ends = [text(&source).to_owned(), at(0), at(1), text(&back).to_owned()];
    for step in ends.windows(2) {
        let copy = cp(&client, &[&step[0], &step[1]]);
        assert_eq!(copy.status.code(), Some(0), "{step:?}: {}", said(&copy));
    }
    assert!(fs::read(&back).unwrap() == bytes);
    for at in [source, servers.roots[0].join("f"), servers.roots[1].join("f"), back] {
        let used = fs::metadata(&at).unwrap().blocks() * 512;
        assert!(used < 8 << 20, "{}: {used}", at.display());
    }
}

#[test]
fn a_server_that_may_not_be_written_to_says_so() {
    let client = Client::new("upload-refused");
    let (root, source) = (client.at("root"), client.at("source"));
    fs::create_dir(&root).unwrap();
    fs::write(&source, "s").unwrap();
    let (keys, ro) = (client.authorized("keys", ""), client.authorized("ro-keys", "ro"));
    for daemon in [
        Daemon::start(&client, &root, &keys),
        Daemon::start_with(&client, &root, &ro, &["--writable"]),
    ] {
        let refused = cp(&client, &[text(&source), &format!("hikyaku://{}/x", daemon.address)]);
        assert_eq!(refused.status.code(), Some(6), "{}", said(&refused));
        assert!(said(&refused).contains("without --writable"), "{}", said(&refused));
        assert!(said(&refused).contains("\ntry: "), "{}", said(&refused));
    }
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0);
}

/// Waits until `is_so` holds, for a while.
fn wait(what: &str, is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// Names below a directory that are temporary. They come and go meanwhile.
fn drafts(at: &Path) -> usize {
    let Ok(entries) = fs::read_dir(at) else { return 0 };
    let of = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => drafts(&entry.path()),
        _ => usize::from(entry.path().extension().is_some_and(|end| end == "hikyaku")),
    };
    entries.filter_map(Result::ok).map(of).sum()
}

/// Starts an upload that takes some seconds, and waits until it is under way at each server.
fn begin(client: &Client, servers: &Servers, source: &Path) -> Child {
    let arguments = ["cp", "-a", "-l", "50m", text(source), &servers.at("")];
    let child = client.command(&arguments).stderr(Stdio::piped()).spawn().unwrap();
    let is_under_way = |root: &PathBuf| root.join("run7/deep").is_dir() && drafts(root) > 0;
    wait("the upload begins", || servers.roots.iter().all(is_under_way));
    child
}

#[test]
fn a_daemon_that_is_killed_is_replaced_by_the_others() {
    let client = Client::new("upload-killed");
    let (mut servers, source) = (Servers::start(&client, 3), client.at("run7"));
    tree(&source);
    let child = begin(&client, &servers, &source);
    servers.daemons[1].kill();
    let copied = child.wait_with_output().unwrap();
    assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
    let address = servers.daemons[1].address.clone();
    assert!(said(&copied).contains(&address), "{}", said(&copied));
    // What it had begun is not seen when it is there again.
    let root = servers.roots[1].clone();
    servers.daemons[1] = Daemon::start_with(&client, &root, &servers.keys, &["--writable"]);
    let back = client.at("back");
    let copied = cp(&client, &["-a", &servers.at("run7"), text(&back)]);
    assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
    assert!(found(&back) == found(&source));
}

#[test]
fn an_upload_that_is_stopped_leaves_nothing_half_made() {
    let client = Client::new("upload-stopped");
    let (servers, source) = (Servers::start(&client, 2), client.at("run7"));
    tree(&source);
    let child = begin(&client, &servers, &source);
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let stopped = child.wait_with_output().unwrap();
    assert!(!stopped.status.success());
    assert!(said(&stopped).contains("complete files are kept"), "{}", said(&stopped));
    wait("the servers remove what is unfinished", || {
        servers.roots.iter().all(|root| drafts(root) == 0)
    });
    let wanted = found(&source);
    for root in &servers.roots {
        let part = found(&root.join("run7"));
        assert!(part.iter().all(|(path, what)| wanted.get(path) == Some(what)));
    }
    let copied = cp(&client, &["-a", text(&source), &servers.at("")]);
    assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
    let back = client.at("back");
    let copied = cp(&client, &["-a", &servers.at("run7"), text(&back)]);
    assert_eq!(copied.status.code(), Some(0), "{}", said(&copied));
    assert!(found(&back) == wanted);
}

#[test]
fn what_a_killed_daemon_has_left_is_gone_when_it_is_started_again() {
    let client = Client::new("upload-swept");
    let mut servers = Servers::start(&client, 1);
    let root = servers.roots[0].clone();
    fs::create_dir(root.join("deep")).unwrap();
    let big = client.at("big");
    fs::write(&big, vec![7; 60_000_000]).unwrap();
    let begin = |servers: &Servers| {
        let mut command =
            client.command(&["cp", "-q", "-l", "8m", text(&big), &servers.at("deep/big")]);
        let copy = command.stderr(Stdio::null()).spawn().unwrap();
        wait("an upload has begun", || drafts(&root) > 0);
        copy
    };
    let mut copy = begin(&servers);
    // SIGKILL: nothing of it is tidied up.
    servers.daemons.clear();
    copy.kill().unwrap();
    copy.wait().unwrap();
    assert_eq!(drafts(&root), 1);
    // A file of that form that no daemon has begun is nobody's business.
    fs::write(root.join(".mine.abcdefghabcde.hikyaku"), "x").unwrap();
    servers.daemons.push(Daemon::start_with(&client, &root, &servers.keys, &["--writable"]));
    wait("the leftover is gone", || drafts(&root) == 1);
    // A second daemon with the same state leaves alone what the first one writes.
    let mut copy = begin_second(&client, &servers, &root, &big);
    let _second = Daemon::start_with(&client, &root, &servers.keys, &["--writable"]);
    assert_eq!(drafts(&root), 2);
    copy.kill().unwrap();
    copy.wait().unwrap();
}

/// An upload that goes on for longer than the test.
fn begin_second(client: &Client, servers: &Servers, root: &Path, big: &Path) -> Child {
    let mut command = client.command(&["cp", "-q", "-l", "8m", text(big), &servers.at("deep/b2")]);
    let copy = command.stderr(Stdio::null()).spawn().unwrap();
    wait("another upload has begun", || drafts(root) > 1);
    copy
}

#[test]
fn the_next_download_removes_what_a_killed_one_has_left_and_nothing_continues() {
    let client = Client::new("download-swept");
    let servers = Servers::start(&client, 1);
    // A download continues no file of this size: the next run of the command begins the file anew.
    fs::write(servers.roots[0].join("big"), vec![7; 4_000_000]).unwrap();
    fs::write(servers.roots[0].join("small"), "x").unwrap();
    let (one, two) = (client.at("one"), client.at("two"));
    fs::create_dir(&one).unwrap();
    fs::create_dir(&two).unwrap();
    let mut command = client.command(&["cp", "-q", "-l", "1m", &servers.at("big"), text(&one)]);
    let mut copy = command.stderr(Stdio::null()).spawn().unwrap();
    wait("a download has begun", || drafts(&one) > 0);
    // Another download leaves it alone while it runs, and removes it when its process is gone, wherever it was.
    assert!(cp(&client, &[&servers.at("small"), text(&two)]).status.success());
    assert_eq!(drafts(&one), 1);
    copy.kill().unwrap();
    copy.wait().unwrap();
    assert_eq!(drafts(&one), 1);
    assert!(cp(&client, &[&servers.at("small"), text(&two)]).status.success());
    assert_eq!(drafts(&one), 0);
}
