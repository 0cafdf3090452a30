//! Kinds of entries of a tree on every way: what arrives, and what is left out by name. Without `-a` a link becomes what it
//! leads to, as far as the holder of the tree offers that; with `-a` it stays a link.

use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon, said};
use crate::common::moto::{MISSING, Moto};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use xtask::servers::ftp::{PlainFtp, Style};
use xtask::servers::gfarm::{Gfarm, NEEDS, Plan};

/// An end of a copy. All but those of Gfarm and of buckets are directories of this machine, so that a test makes and sees
/// their entries itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Here,
    Host,
    Sftp,
    Daemon,
    Daemons,
    Ftp,
    Gfarm,
    Bucket,
}

/// Sources and targets that are copied from one to the other.
const WAYS: [(End, End); 15] = [
    (End::Here, End::Here),
    (End::Here, End::Host),
    (End::Host, End::Here),
    (End::Here, End::Sftp),
    (End::Sftp, End::Here),
    (End::Here, End::Daemon),
    (End::Here, End::Daemons),
    (End::Daemon, End::Here),
    (End::Daemons, End::Here),
    (End::Daemon, End::Daemon),
    (End::Host, End::Daemon),
    (End::Daemon, End::Host),
    (End::Daemon, End::Daemons),
    (End::Here, End::Ftp),
    (End::Daemon, End::Ftp),
];

/// Pairs with Gfarm and buckets, which may be missing.
const OTHERS: [(End, End); 4] = [
    (End::Here, End::Gfarm),
    (End::Daemon, End::Gfarm),
    (End::Here, End::Bucket),
    (End::Daemon, End::Bucket),
];

/// The entries below the source, with the text of each link, or the content of each file.
const TREE: [(&str, Kind); 12] = [
    ("file", Kind::File),
    ("dir/inner", Kind::File),
    ("sparse", Kind::Sparse),
    ("to-file", Kind::Link("file")),
    ("to-dir", Kind::Link("dir")),
    ("dir/up-to-file", Kind::Link("../file")),
    ("twice", Kind::Link("to-file")),
    ("beside", Kind::Link("../beside")),
    ("dangling", Kind::Link("none")),
    ("dir/cycle", Kind::Link("..")),
    ("out", Kind::Link("../../outside")),
    ("fifo", Kind::Fifo),
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    File,
    /// A hole, and data behind it.
    Sparse,
    Link(&'static str),
    Fifo,
}

/// Files that arrive without `-a`, whichever end holds the tree.
const FOLLOWED: [&str; 11] = [
    "beside/b",
    "dir/inner",
    "dir/up-to-file",
    "file",
    "sparse",
    "to-dir/inner",
    "to-dir/up-to-file",
    "to-file",
    "twice",
    "beside/deep/c",
    "beside/to-c",
];

const HOLE: u64 = 4 << 20;

struct Rig {
    sshd: Sshd,
    client: Client,
    daemons: [Daemon; 2],
    ftp: PlainFtp,
}

impl Rig {
    /// The first daemon and the FTP server serve `root`, the second daemon `second`.
    fn up(name: &str) -> Self {
        let sshd = Sshd::with_lines(&format!("{name}-host"), "Subsystem sftp internal-sftp\n");
        let client = Client::new(name);
        let keys = client.authorized("keys", "");
        let serve = |root: &str| {
            fs::create_dir(client.at(root)).unwrap();
            Daemon::start_with(&client, &client.at(root), &keys, &["--writable"])
        };
        let daemons = [serve("root"), serve("second")];
        let ftp = PlainFtp::start(&client.at("root"), Style::Facts).unwrap();
        make(&client.at("root"));
        fs::write(client.at("outside"), "outside").unwrap();
        Self { sshd, client, daemons, ftp }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.client.at(name)
    }

    /// A path below the directory of the first daemon, as this end calls it.
    fn named(&self, end: End, path: &str) -> String {
        let here = self.at("root").join(path).display().to_string();
        let [one, two] = &self.daemons;
        match end {
            End::Here => here,
            End::Host | End::Sftp => format!("far:{here}"),
            End::Daemon => format!("hikyaku://{}/{path}", one.address),
            End::Daemons => format!("hikyaku://{},{}/{path}", one.address, two.address),
            End::Ftp => format!("{}/{path}", self.ftp.url()),
            End::Gfarm => format!("gfarm:///{path}"),
            End::Bucket => format!("s3://bucket/{path}"),
        }
    }

    /// Copies `t` to `to`, and returns the exit code and the messages.
    fn cp(&self, way: (End, End), options: &[&str], more: &More) -> (Option<i32>, String) {
        let config = self.sshd.at("ssh_config").display().to_string();
        let host = ["-F", &config, "--remote-path", env!("CARGO_BIN_EXE_hikyaku")];
        let is = |end| [way.0, way.1].contains(&end);
        let mut words = vec!["cp"];
        words.extend(host.iter().take(if is(End::Host) { 4 } else { 0 }));
        if is(End::Sftp) {
            words.extend(["-F", &config, "--via", "sftp"]);
        }
        let ends = [self.named(way.0, "t"), self.named(way.1, "to")];
        words.extend(options);
        let mut command = self.client.command(&words);
        more.note(&mut command);
        let output = command.args(ends).stdin(Stdio::null()).output().unwrap();
        (output.status.code(), said(&output))
    }

    fn clear(&self) {
        for root in ["root", "second"] {
            let _ = fs::remove_dir_all(self.at(root).join("to"));
        }
    }

    /// Files at the target, in the order of their names.
    fn files(&self, target: End, more: &More) -> Vec<(String, Vec<u8>)> {
        let mut all = match (target, more) {
            (End::Gfarm, More::Gfarm(gfarm)) => {
                let back = self.at("back");
                let _ = fs::remove_dir_all(&back);
                let mut command = self.client.command(&["cp", "-a", "gfarm:///to"]);
                command.arg(&back).env("GFARM_CONFIG_FILE", gfarm.config());
                assert!(command.output().unwrap().status.success());
                listing(&back)
            }
            (End::Bucket, More::Bucket(moto)) => {
                let keys = moto.keys("to/").into_iter().filter(|key| !key.ends_with('/'));
                keys.map(|key| (key["to/".len()..].to_owned(), moto.get(&key))).collect()
            }
            (End::Daemons, _) => {
                let roots = ["root", "second"].map(|root| listing(&self.at(root).join("to")));
                roots.concat()
            }
            _ => listing(&self.at("root/to")),
        };
        all.sort();
        all
    }
}

/// A storage beside the others.
enum More {
    None,
    Gfarm(Gfarm),
    Bucket(Moto),
}

impl More {
    fn note(&self, command: &mut std::process::Command) {
        match self {
            Self::None => {}
            Self::Gfarm(gfarm) => drop(command.env("GFARM_CONFIG_FILE", gfarm.config())),
            Self::Bucket(moto) => {
                Moto::credentials(command);
                command.args(["--endpoint", &moto.endpoint()]);
            }
        }
    }

    fn clear(&self) {
        match self {
            Self::None => {}
            // The tree may be missing.
            Self::Gfarm(gfarm) => drop(gfarm.run("gfrm", &["-rf", "/to"])),
            Self::Bucket(moto) => moto.remove("to/"),
        }
    }
}

impl Drop for More {
    fn drop(&mut self) {
        if let Self::Gfarm(gfarm) = self {
            gfarm.down().unwrap();
        }
    }
}

/// Makes the tree `t`, and what its links lead to.
fn make(root: &Path) {
    fs::create_dir_all(root.join("t/dir")).unwrap();
    fs::create_dir_all(root.join("beside/deep")).unwrap();
    fs::write(root.join("beside/b"), "b").unwrap();
    fs::write(root.join("beside/deep/c"), "c").unwrap();
    symlink("deep/c", root.join("beside/to-c")).unwrap();
    for (name, kind) in TREE {
        let at = root.join("t").join(name);
        match kind {
            Kind::File => fs::write(at, name).unwrap(),
            Kind::Sparse => {
                let file = fs::File::create(at).unwrap();
                std::os::unix::fs::FileExt::write_all_at(&file, b"end", HOLE).unwrap();
            }
            Kind::Link(text) => symlink(text, at).unwrap(),
            Kind::Fifo => {
                mknodat(CWD, at, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
            }
        }
    }
}

/// Files below a directory and their bytes; a link has its text.
fn listing(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let (mut all, mut dirs) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(at) = dirs.pop() {
        for entry in fs::read_dir(&at).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().display().to_string();
            let kind = path.symlink_metadata().unwrap().file_type();
            if kind.is_dir() {
                dirs.push(path);
            } else if kind.is_symlink() {
                let text = fs::read_link(&path).unwrap().display().to_string();
                all.push((format!("{name} -> {text}"), Vec::new()));
            } else {
                all.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    all
}

/// The content of a file of the tree.
fn content(name: &str) -> Vec<u8> {
    match name {
        "sparse" => [vec![0; HOLE as usize], b"end".to_vec()].concat(),
        "to-file" | "twice" | "dir/up-to-file" | "to-dir/up-to-file" => b"file".to_vec(),
        "to-dir/inner" => b"dir/inner".to_vec(),
        "out" => b"outside".to_vec(),
        "beside/b" => b"b".to_vec(),
        "beside/deep/c" | "beside/to-c" => b"c".to_vec(),
        name => name.as_bytes().to_vec(),
    }
}

/// Without `-a`.
fn are_followed(rig: &Rig, way: (End, End), more: &More) {
    rig.clear();
    more.clear();
    let (code, text) = rig.cp(way, &["-r"], more);
    let is_rooted = matches!(way.0, End::Daemon | End::Daemons);
    let mut names = FOLLOWED.to_vec();
    if !is_rooted {
        names.push("out");
    }
    names.sort_unstable();
    let found = rig.files(way.1, more);
    let there: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
    assert_eq!(there, names, "{way:?}: {text}");
    for (name, bytes) in &found {
        assert!(*bytes == content(name), "{way:?}: {name}");
    }
    assert_eq!(code, Some(6), "{way:?}: {text}");
    for name in ["dangling", "fifo"] {
        assert!(text.contains(&format!("{name}: ")), "{way:?}: {name} is not in {text}");
    }
    // Some ways name the directory where the link leads.
    let is_circle = text.contains("cycle: ") || text.contains("leads back to a directory above it");
    assert!(is_circle, "{way:?}: {text}");
    if is_rooted {
        assert!(
            text.contains("out: a link leads out of what its holder offers"),
            "{way:?}: {text}"
        );
    }
}

/// With `-a`. A target that has no links gets none.
fn stay_links(rig: &Rig, way: (End, End), more: &More) {
    rig.clear();
    more.clear();
    let (_, text) = rig.cp(way, &["-a"], more);
    let found = rig.files(way.1, more);
    let has_links = !matches!(way.1, End::Ftp | End::Bucket);
    assert_eq!(text.contains("has no symbolic links"), !has_links, "{way:?}: {text}");
    let mut names: Vec<String> = TREE
        .iter()
        .filter(|(_, kind)| *kind != Kind::Fifo)
        .filter(|(_, kind)| has_links || !matches!(kind, Kind::Link(_)))
        .map(|(name, kind)| match kind {
            Kind::Link(text) => format!("{name} -> {text}"),
            _ => (*name).to_owned(),
        })
        .collect();
    names.sort();
    let mut there: Vec<&str> = found.iter().map(|(name, _)| &**name).collect();
    // Each of several daemons has all links.
    there.dedup();
    assert_eq!(there, names, "{way:?}: {text}");
}

#[test]
fn links_of_a_tree_are_followed_on_every_way_and_kept_with_a() {
    let rig = Rig::up("entries");
    for way in WAYS {
        are_followed(&rig, way, &More::None);
        stay_links(&rig, way, &More::None);
    }
}

#[test]
fn holes_of_a_tree_stay_holes_on_this_host() {
    let rig = Rig::up("entries-holes");
    for way in WAYS.into_iter().filter(|way| *way == (End::Here, End::Here)) {
        rig.clear();
        rig.cp(way, &["-r"], &More::None);
        let allocated = fs::metadata(rig.at("root/to/sparse")).unwrap().blocks() * 512;
        assert!(allocated < HOLE, "{way:?}: {allocated}");
    }
}

#[test]
fn links_of_a_tree_are_followed_into_gfarm_and_buckets() {
    let rig = Rig::up("entries-others");
    let [gfarm, bucket] = [gfarm(), bucket()];
    for way in OTHERS {
        let is_bucket = [way.0, way.1].contains(&End::Bucket);
        let Some(more) = (if is_bucket { &bucket } else { &gfarm }) else { continue };
        are_followed(&rig, way, more);
        stay_links(&rig, way, more);
    }
}

#[test]
fn a_property_that_the_target_does_not_keep_is_noted_once() {
    const SET_ID: &str = "set-user-id and set-group-id bits are not kept";
    const TIMES: &str = "does not keep modification times";
    const MODES: &str = "does not keep permission bits";
    const LINKS: &str = "has no symbolic links: those of the sources are left out";
    let rig = Rig::up("entries-losses");
    let bare = PlainFtp::start(&rig.at("bare"), Style::Bare).unwrap();
    for name in ["p", "q"] {
        let dir = rig.at("root").join(name);
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("f"), name).unwrap();
        fs::set_permissions(dir.join("f"), fs::Permissions::from_mode(0o4755)).unwrap();
        symlink("f", dir.join("l")).unwrap();
    }
    let bare = |to: &str| format!("{}/{to}", bare.url());
    let here = |to: &str| rig.named(End::Here, to);
    let served = |to: &str| rig.named(End::Daemon, to);
    let [p, q] = [here("p"), here("q")];
    let [far_p, far_q] = [served("p"), served("q")];
    for (number, (options, sources, target, noted)) in [
        ("-rp", [&p, &q], served("TO/"), &[SET_ID][..]),
        ("-r", [&p, &q], served("TO/"), &[]),
        ("-rp", [&far_p, &far_q], here("TO"), &[SET_ID]),
        ("-rp", [&far_p, &far_q], rig.named(End::Daemons, "TO/"), &[SET_ID]),
        ("-a", [&p, &far_q], rig.named(End::Ftp, "TO/"), &[SET_ID, LINKS]),
        ("-a", [&p, &far_q], bare("TO/"), &[TIMES, MODES, LINKS]),
        ("-rp", [&p, &q], bare("TO/"), &[TIMES, MODES]),
        ("-r", [&p, &q], bare("TO/"), &[]),
        ("-aq", [&p, &q], bare("TO/"), &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let dir = format!("to{number}");
        for root in ["root", "second", "bare"] {
            fs::create_dir(rig.at(root).join(&dir)).unwrap();
        }
        let target = target.replace("TO", &dir);
        let output = rig.client.run(&["cp", options, sources[0], sources[1], &target]);
        let text = said(&output);
        assert_eq!(output.status.code(), Some(0), "{options} {target}: {text}");
        for words in [SET_ID, TIMES, MODES, LINKS] {
            let count = usize::from(noted.contains(&words));
            assert_eq!(text.matches(words).count(), count, "{options} {target}: {words}: {text}");
        }
    }
}

fn gfarm() -> Option<More> {
    if !NEEDS.iter().all(xtask::Need::is_present) {
        let why = "no Gfarm here (try: apt-get install gfmd gfsd gfarm-client)";
        crate::common::skipped("links of Gfarm", why);
        return None;
    }
    let dir = crate::common::scratch("entries-gfarm");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    Some(More::Gfarm(Gfarm::up(&dir, &Plan { nodes: 2, ..Plan::default() }).unwrap()))
}

fn bucket() -> Option<More> {
    if !cfg!(feature = "s3") {
        let why = "this program is built without S3 (try: --features s3)";
        crate::common::skipped("links into a bucket", why);
        return None;
    }
    let moto = Moto::up();
    if moto.is_none() {
        crate::common::skipped("links into a bucket", MISSING);
    }
    moto.map(More::Bucket)
}
