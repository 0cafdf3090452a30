//! `hikyaku cp` on every way that a copy may go.

mod transport;

use super::{Ends, noted, refused, words};
use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon};
use hikyaku_console::{Effect, Row, Table, Way};
use hikyaku_copy::TABLE;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};
use xtask::servers::ftp::{PlainFtp, Style};

/// The ways with an end that is real here.
const ENDS: [Way; 10] = [
    Way::Here,
    Way::Ssh,
    Way::Through,
    Way::Sftp,
    Way::FromDaemons,
    Way::ToDaemons,
    Way::FromFtp,
    Way::ToFtp,
    Way::FromHost,
    Way::ToHost,
];

/// Real ends: an sshd, and a daemon and an FTP server that may be written to.
struct Rig {
    sshd: Sshd,
    client: Client,
    daemon: Daemon,
    ftp: PlainFtp,
}

impl Rig {
    fn new(name: &str) -> Self {
        let sshd = Sshd::with_lines(name, "Subsystem sftp internal-sftp\n");
        let client = Client::new(name);
        fs::create_dir(client.at("root")).unwrap();
        let keys = client.authorized("keys", "");
        let daemon = Daemon::start_with(&client, &client.at("root"), &keys, &["--writable"]);
        let ftp = PlainFtp::start(&client.at("root"), Style::Facts).unwrap();
        Self { sshd, client, daemon, ftp }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.client.at(name)
    }

    fn local(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    /// Source and target of a way, and options without which it is not this way.
    fn ends(&self, way: Way) -> (String, String, &'static [&'static str]) {
        let (source, target) = (self.local("source"), self.local("target"));
        let far = |path: &str| format!("far:{path}");
        let served = |path: &str| format!("hikyaku://{}/{path}", self.daemon.address);
        let gfarm = || "gfarm:///hikyaku-matrix".to_owned();
        let bucket = || "s3://hikyaku-matrix/key".to_owned();
        let ftp = |path: &str| format!("{}/{path}", self.ftp.url());
        let grid = || "gsiftp://127.0.0.1:1/file".to_owned();
        match way {
            Way::Here => (source, target, &[]),
            Way::Ssh => (source, far(&target), &[]),
            Way::Through => (far(&source), far(&target), &[]),
            Way::Sftp => (source, far(&target), &["--via", "sftp"]),
            Way::FromDaemons => (served("source"), target, &[]),
            Way::ToDaemons => (source, served("target"), &[]),
            Way::FromGfarm => (gfarm(), target, &[]),
            Way::ToGfarm => (source, gfarm(), &[]),
            Way::FromBucket => (bucket(), target, &[]),
            Way::ToBucket => (source, bucket(), &[]),
            Way::FromWeb => ("http://127.0.0.1:1/file".to_owned(), target, &[]),
            Way::FromFtp => (ftp("source"), target, &[]),
            Way::ToFtp => (source, ftp("target"), &[]),
            Way::FromGridFtp => (grid(), target, &[]),
            Way::ToGridFtp => (source, grid(), &[]),
            Way::FromHost => (far(&source), served("target"), &[]),
            Way::ToHost => (served("source"), far(&target), &[]),
            other => unreachable!("cp does not go {other:?}"),
        }
    }
}

impl Ends for Rig {
    fn table(&self) -> &Table {
        &TABLE
    }

    fn fill(&self) {
        made(self).iter().for_each(|path| drop(fs::remove_file(path)));
        filled(&self.at("source"));
        filled(&self.at("root/source"));
        fs::write(self.at("list"), "source\n").unwrap();
    }

    fn made(&self) -> Vec<PathBuf> {
        made(self)
    }

    fn value(&self, row: &Row) -> &'static str {
        match row.id {
            "limit" | "rate" | "server_rate" => "1g",
            "ssh_port" => "22",
            "identity" | "ssh_config" | "files_from" | "remote_path" => "list",
            "far_binary" => env!("CARGO_BIN_EXE_hikyaku"),
            "jump" | "primary" => "hop",
            "ssh_option" => "LogLevel=ERROR",
            "ssh_program" => "ssh",
            "cipher_spec" => "aes128-ctr",
            "sftp_server" | "exclude" | "include" | "manifest" | "log_dir" => "name",
            "cipher" => "aes128gcm",
            "policy" => "fair",
            "window" | "buffer" => "64MB",
            "udp_ports" => "60001-60999",
            "via" => "native",
            "pipes" | "streams" => "2",
            "timeout" => "60s",
            "retry_for" | "pause" | "stagger" => "0s",
            "stats" => "1s",
            "endpoint" => "http://127.0.0.1:1",
            "cookies" => "jar",
            _ => "",
        }
    }

    fn required(&self, row: &Row) -> &'static [&'static str] {
        match row.id {
            "from0" => &["--files-from", "list"],
            "primary" => &["--start-servers"],
            _ => &[],
        }
    }

    fn is_run(&self, row: &Row, way: Way) -> bool {
        // SFTP is asked for by the one, and the other gives more options an effect. A host by ssh has the way of the other
        // storage beside it, which has a row of its own.
        (row.id, way) != ("via", Way::Sftp) && row.id != "gfarm_daemons" && !is_host(way)
    }

    fn has_end(&self, way: Way) -> bool {
        ENDS.contains(&way)
    }

    fn run(&self, way: Way, options: &[String]) -> (Output, String) {
        let (source, target, more) = self.ends(way);
        let mut command = self.client.command(&["cp"]);
        if matches!(way, Way::Ssh | Way::Through | Way::Sftp) || is_host(way) {
            command.args(["-F", &self.sshd.at("ssh_config").display().to_string()]);
        }
        if matches!(way, Way::Ssh | Way::Through) || is_host(way) {
            command.args(["--remote-path", env!("CARGO_BIN_EXE_hikyaku")]);
        }
        command.args(more).args(options).args(["--", &source, &target]);
        command.env("XDG_CONFIG_HOME", self.at("config")).env("HOME", self.at(""));
        let output = command.current_dir(self.at("")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, said)
    }
}

/// Where the source or the target of a way is.
fn place(way: Way, name: &'static str) -> String {
    let is_served = match name {
        "source" => matches!(way, Way::FromDaemons | Way::FromFtp | Way::ToHost),
        _ => matches!(way, Way::ToDaemons | Way::ToFtp | Way::FromHost),
    };
    if is_served { format!("root/{name}") } else { name.to_owned() }
}

/// Whether a host by ssh is one end, and a storage the other one.
fn is_host(way: Way) -> bool {
    matches!(way, Way::FromHost | Way::ToHost)
}

/// Names that copies of this test would make.
fn made(rig: &Rig) -> Vec<PathBuf> {
    let targets = ["target", "root/target", "name"].map(|name| rig.at(name));
    targets.into_iter().filter(|path| path.exists()).collect()
}

fn filled(at: &Path) {
    fs::write(at, "new").unwrap();
}

#[test]
fn an_option_that_protects_something_is_refused_by_name_where_it_cannot_be_had() {
    refused(&Rig::new("matrix-refused"));
}

#[test]
fn any_other_option_without_effect_is_noted_in_one_line() {
    noted(&Rig::new("matrix-noted"));
}

/// What is at the target of a tree with `a.tmp`, `b` and `d/c` after a copy onto an own, younger `b`.
struct Seen {
    options: &'static [&'static str],
    names: &'static [&'static str],
    b: &'static str,
}

const ALL: &[&str] = &["a.tmp", "b", "d/c"];
const OWN: &[&str] = &["b"];

/// Options that choose, and what is there afterwards. The first row has none: the others differ from it.
const CHOICES: [Seen; 8] = [
    Seen { options: &["-r"], names: ALL, b: "new" },
    Seen { options: &["-r", "-n"], names: OWN, b: "own" },
    Seen { options: &["-r", "-u"], names: ALL, b: "own" },
    Seen { options: &["-r", "--ignore-existing"], names: ALL, b: "own" },
    Seen { options: &["-r", "--exclude", "*.tmp"], names: &["b", "d/c"], b: "new" },
    Seen {
        options: &["-r", "--exclude", "*", "--include", "a.tmp"],
        names: &["a.tmp", "b"],
        b: "own",
    },
    Seen { options: &["-r", "--files-from", "lines"], names: &["b", "d/c"], b: "own" },
    Seen { options: &["-r", "--files-from", "zeros", "-0"], names: &["b", "d/c"], b: "own" },
];

#[test]
fn options_that_choose_files_are_honoured_on_every_way_with_a_real_end() {
    let rig = Rig::new("matrix-chosen");
    fs::write(rig.at("lines"), "d/c\n").unwrap();
    fs::write(rig.at("zeros"), "d/c\0").unwrap();
    for way in ENDS {
        let (source, target) = (rig.at(&place(way, "source")), rig.at(&place(way, "target")));
        for Seen { options, names, b } in &CHOICES {
            let _ = (fs::remove_dir_all(&source), fs::remove_dir_all(&target));
            fs::create_dir_all(source.join("d")).unwrap();
            for name in ALL {
                fs::write(source.join(name), "new").unwrap();
            }
            // With a list the contents come into the target, and else the tree.
            let into = if options.contains(&"--files-from") { "" } else { "source" };
            fs::create_dir_all(target.join(into)).unwrap();
            // Whole seconds are all that SFTP has.
            let old = std::time::SystemTime::now() - std::time::Duration::from_secs(100);
            fs::File::open(source.join("b")).unwrap().set_modified(old).unwrap();
            fs::write(target.join(into).join("b"), "own").unwrap();
            let options: Vec<String> = options.iter().map(|word| (*word).to_owned()).collect();
            let (output, said) = rig.run(way, &options);
            assert_eq!(output.status.code(), Some(0), "{way:?} {options:?}: {said}");
            let listed = crate::common::listing(&target.join(into));
            let found: Vec<&str> = listed.iter().map(|(name, _)| name.to_str().unwrap()).collect();
            assert_eq!(found, *names, "{way:?} {options:?}: {said}");
            let found = fs::read_to_string(target.join(into).join("b")).unwrap();
            assert_eq!(found, *b, "{way:?} {options:?}: {said}");
        }
    }
}

#[test]
fn a_limit_holds_on_every_way_with_a_real_end() {
    let rig = Rig::new("matrix-limited");
    for name in ["source", "root/source"] {
        fs::write(rig.at(name), vec![7; 3_000_000]).unwrap();
    }
    let limit: &[&str] = &["-l", "8m"];
    let of_servers: &[&str] = &["--server-rate", "8m"];
    let by_server = [Way::FromDaemons, Way::ToDaemons].map(|way| (way, of_servers));
    let limits = ENDS.map(|way| (way, limit)).into_iter().chain(by_server);
    for (way, limit) in limits {
        made(&rig).iter().for_each(|path| fs::remove_file(path).unwrap());
        let begin = Instant::now();
        let (output, said) = rig.run(way, &words(limit));
        assert_eq!(output.status.code(), Some(0), "{way:?} {limit:?}: {said}");
        // Three seconds, less what may go at once.
        assert!(begin.elapsed() > Duration::from_secs(1), "{way:?}: {:?}", begin.elapsed());
    }
}

#[test]
fn what_makes_a_copy_safe_is_done_where_it_is_accepted() {
    let rig = Rig::new("matrix-safe");
    filled(&rig.at("source"));
    filled(&rig.at("root/source"));
    let is_honoured = |way: Way, flag: &str| {
        let mut rows = TABLE.rows.iter().filter(|row| row.flag == flag);
        // Data from a host go to a daemon here, which refuses what it cannot do.
        let ways = if way == Way::FromHost { &[way, Way::ToDaemons][..] } else { &[way] };
        rows.all(|row| ways.iter().all(|way| TABLE.effect(row, *way, &[]) == Effect::Honoured))
    };
    for way in ENDS {
        let target = rig.at(&place(way, "target"));
        for (flag, is_same_file) in [("--inplace", true), ("--verify", false)] {
            if !is_honoured(way, flag) {
                continue;
            }
            fs::write(&target, "older").unwrap();
            let before = fs::metadata(&target).unwrap().ino();
            let (output, said) = rig.run(way, &words(&[flag]));
            assert_eq!(output.status.code(), Some(0), "{way:?} {flag}: {said}");
            let after = fs::metadata(&target).unwrap().ino();
            assert_eq!(before == after, is_same_file, "{way:?} {flag}");
            assert_eq!(fs::read_to_string(&target).unwrap(), "new", "{way:?}");
        }
    }
    // At the second copy the target has the file already. The manifest lists the file anyway.
    let mut hashes = BTreeSet::new();
    for way in ENDS.into_iter().flat_map(|way| [way; 2]) {
        if !is_honoured(way, "--manifest") {
            continue;
        }
        let (output, said) = rig.run(way, &words(&["--manifest", "name"]));
        assert_eq!(output.status.code(), Some(0), "{way:?}: {said}");
        let manifest = fs::read_to_string(rig.at("name")).unwrap();
        let (hash, name) = manifest.split_once("  ").unwrap_or_else(|| panic!("{way:?}"));
        assert!(["source\n", "target\n"].contains(&name), "{way:?}: {manifest}");
        hashes.insert(hash.to_owned());
        fs::remove_file(rig.at("name")).unwrap();
    }
    assert_eq!(hashes.len(), 1, "{hashes:?}");
    // The same of what carries the data.
    for (options, wanted) in
        [(&["--no-udp"][..], true), (&["--via", "tcp"], true), (&["-v"], false)]
    {
        let (output, said) = rig.run(Way::FromDaemons, &words(options));
        assert_eq!(output.status.code(), Some(0), "{options:?}: {said}");
        assert_eq!(said.contains("is reached over TCP"), wanted, "{options:?}: {said}");
    }
}
