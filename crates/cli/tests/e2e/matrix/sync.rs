//! `hikyaku sync` on every way: within this machine, to and from a far hikyaku, between two of them, by SFTP, and with daemons
//! at one end or both.

use super::{Ends, log_in_once, noted, refused};
use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon};
use hikyaku_console::{Row, Table, Way};
use hikyaku_sync::TABLE;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

/// A machine that is reached by ssh, two daemons, and a directory of all ends.
struct Rig {
    sshd: Sshd,
    client: Client,
    /// They serve the directory.
    daemons: [Daemon; 2],
}

/// Which end is not on this machine.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Far {
    Source,
    Target,
    Both,
}

/// All ways with real ends, and which end is the far one, if one is.
const WAYS: [(Way, Far); 11] = [
    (Way::Here, Far::Target),
    (Way::Ssh, Far::Target),
    (Way::Ssh, Far::Source),
    (Way::Through, Far::Both),
    (Way::Sftp, Far::Target),
    (Way::Sftp, Far::Source),
    (Way::ToDaemons, Far::Target),
    (Way::FromDaemons, Far::Source),
    (Way::ToDaemons, Far::Both),
    // The other end is a daemon.
    (Way::FromHost, Far::Source),
    (Way::ToHost, Far::Target),
];

/// Whether the way is one with daemons.
fn is_stored(way: Way) -> bool {
    matches!(way, Way::FromDaemons | Way::ToDaemons) || is_of_host(way)
}

/// Whether one end is a host by ssh, and the other one a daemon.
fn is_of_host(way: Way) -> bool {
    matches!(way, Way::FromHost | Way::ToHost)
}

impl Rig {
    fn new(name: &str) -> Self {
        let sshd = Sshd::with_lines(name, "Subsystem sftp internal-sftp\n");
        let client = Client::new(&format!("{name}-ends"));
        let keys = client.authorized("keys", "");
        let own = ["own", "other"].map(|name| client.at(name).display().to_string());
        let serve = |own: &String| {
            Daemon::start_with(&client, &client.at(""), &keys, &["--writable", "--key", own])
        };
        let daemons = [serve(&own[0]), serve(&own[1])];
        log_in_once(&sshd);
        Self { sshd, client, daemons }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.client.at(name)
    }

    /// The directory `name` of one end, as it is typed.
    fn end(&self, name: &str, way: Way, number: usize) -> String {
        let path = format!("{}/", self.at(name).display());
        match way {
            Way::Ssh | Way::Through | Way::Sftp => format!("far:{path}"),
            Way::FromDaemons | Way::ToDaemons => {
                format!("hikyaku://{}/{name}/", self.daemons[number].address)
            }
            Way::FromGfarm | Way::ToGfarm => format!("gfarm:///hikyaku-matrix/{name}/"),
            Way::FromBucket | Way::ToBucket => format!("s3://hikyaku-matrix/{name}/"),
            Way::FromFtp | Way::ToFtp => format!("ftp://127.0.0.1:1/{name}/"),
            Way::FromGridFtp | Way::ToGridFtp => format!("gsiftp://127.0.0.1:1/{name}/"),
            _ => path,
        }
    }

    /// Runs `sync` with these options from `source/` to `target/`.
    fn sync(&self, (way, far): (Way, Far), options: &[&str]) -> (Output, String) {
        let end = |name: &str, at: Far, number| {
            let way = match (way, [Far::Both, at].contains(&far)) {
                (Way::FromHost | Way::ToHost, true) => Way::Ssh,
                (Way::FromHost | Way::ToHost, false) => Way::ToDaemons,
                (way, true) => way,
                (_, false) => Way::Here,
            };
            self.end(name, way, number)
        };
        let rsh = format!("ssh -F {}", self.sshd.at("ssh_config").display());
        let mut command = self.client.command(&["sync"]);
        if matches!(way, Way::Ssh | Way::Through | Way::Sftp) || is_of_host(way) {
            let program = if way == Way::Sftp { "none" } else { env!("CARGO_BIN_EXE_hikyaku") };
            command.args(["-e", &rsh, "--remote-path", program]);
        }
        command.args(options).arg("--");
        command.args([end("source", Far::Source, 0), end("target", Far::Target, 1)]);
        command.env("XDG_CONFIG_HOME", self.at("config"));
        let output = command.current_dir(self.at("")).stdin(Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, said)
    }

    /// The source and the target of [`CASES`], anew.
    fn trees(&self) {
        for name in ["source", "target"] {
            let _ = fs::remove_dir_all(self.at(name));
        }
        fs::create_dir_all(self.at("source/d")).unwrap();
        fs::create_dir_all(self.at("target")).unwrap();
        let files = [
            ("source/a.tmp", "new"),
            ("source/b", "new"),
            ("source/big", "0123456789"),
            ("source/d/c", "new"),
            ("source/t", "new"),
            ("target/b", "own"),
            ("target/e", "own"),
            ("target/t", "old"),
        ];
        for (name, content) in files {
            fs::write(self.at(name), content).unwrap();
        }
        symlink("b", self.at("source/l")).unwrap();
        let set_mode = |name: &str, mode| {
            fs::set_permissions(self.at(name), fs::Permissions::from_mode(mode)).unwrap();
        };
        set_mode("source/b", 0o640);
        set_mode("target/b", 0o604);
        // Whole seconds are all that SFTP has.
        let whole = |secs: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(secs);
        for (name, secs) in [("source/b", 1_700_000_000), ("target/b", 1_700_000_100)] {
            fs::File::open(self.at(name)).unwrap().set_modified(whole(secs)).unwrap();
        }
        for name in ["source/t", "target/t"] {
            fs::File::open(self.at(name)).unwrap().set_modified(whole(1_600_000_000)).unwrap();
        }
    }

    /// What the target of [`CASES`] has: its names in order, what the interesting ones are, and what `b` has of the source.
    fn state(&self) -> String {
        let root = self.at("target");
        let told = crate::common::listing(&root).into_iter().map(|(name, _)| {
            let path = root.join(&name);
            let shown = name.display().to_string();
            match &shown[..] {
                "b" | "t" => {
                    let content = fs::read_to_string(&path).unwrap();
                    format!("{shown}={content}{}", kept(&path, &self.at("source").join(&name)))
                }
                _ => shown,
            }
        });
        told.collect::<Vec<_>>().join(" ")
    }
}

/// Which of mode and time a copy has of its source.
fn kept(copy: &Path, source: &Path) -> String {
    let Ok(source) = fs::metadata(source) else { return String::new() };
    let copy = fs::metadata(copy).unwrap();
    let is_time = copy.modified().unwrap() == source.modified().unwrap();
    let is_mode = copy.permissions() == source.permissions();
    [(is_mode, ":m"), (is_time, ":t")].iter().filter(|(is, _)| *is).map(|(_, mark)| *mark).collect()
}

impl Ends for Rig {
    fn table(&self) -> &Table {
        &TABLE
    }

    fn fill(&self) {
        let _ = fs::remove_dir_all(self.at("target"));
        let _ = fs::remove_dir_all(self.at("source"));
        fs::create_dir_all(self.at("source")).unwrap();
        fs::write(self.at("source/a"), "new").unwrap();
    }

    fn made(&self) -> Vec<PathBuf> {
        Some(self.at("target")).into_iter().filter(|path| path.exists()).collect()
    }

    fn value(&self, row: &Row) -> &'static str {
        match row.id {
            "suffix" => ".bak",
            "rsh" | "ssh_program" => "ssh",
            "ssh_port" => "22",
            "identity" | "ssh_config" => "list",
            "jump" => "hop",
            "ssh_option" => "LogLevel=ERROR",
            "remote_path" => "none",
            "far_binary" => env!("CARGO_BIN_EXE_hikyaku"),
            "timeout" => "60",
            "via" => "auto",
            "pipes" => "2",
            "endpoint" => "http://127.0.0.1:1",
            _ => "",
        }
    }

    /// The other end of a copy with a host has ways of its own.
    fn is_run(&self, _: &Row, way: Way) -> bool {
        !is_of_host(way)
    }

    fn named(&self, way: Way) -> Way {
        if way == Way::Sftp { Way::Ssh } else { way }
    }

    fn has_end(&self, way: Way) -> bool {
        WAYS.iter().any(|(real, _)| *real == way)
    }

    fn run(&self, way: Way, options: &[String]) -> (Output, String) {
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let far = match way {
            Way::Through => Far::Both,
            Way::FromDaemons
            | Way::FromGfarm
            | Way::FromBucket
            | Way::FromFtp
            | Way::FromGridFtp
            | Way::FromHost => Far::Source,
            _ => Far::Target,
        };
        self.sync((way, far), &[&["-rt"], &options[..]].concat())
    }
}

#[test]
fn an_option_of_sync_that_protects_something_is_refused_by_name_where_it_cannot_be_had() {
    let rig = Rig::new("matrix-sync-refused");
    refused(&rig);
    let is_by_ssh = |(way, _): &(Way, Far)| *way != Way::Here && !is_stored(*way);
    for (way, far) in WAYS.into_iter().filter(is_by_ssh) {
        // A value that cannot be had there.
        for [option, value] in [["--modify-window", "-1"], ["--timeout", "3"]] {
            rig.fill();
            let (output, said) = rig.sync((way, far), &["-rt", option, value]);
            assert_eq!(output.status.code(), Some(1), "{way:?} {option}: {said}");
            assert!(said.contains(option) && said.contains("try"), "{said}");
            assert_eq!(rig.made(), Vec::<PathBuf>::new(), "{way:?} {option}: {said}");
        }
    }
}

#[test]
fn any_other_option_of_sync_without_effect_is_noted_in_one_line() {
    noted(&Rig::new("matrix-sync-noted"));
}

/// The state after `sync` with the options, and its exit code.
struct Case {
    options: &'static [&'static str],
    state: &'static str,
    code: i32,
}

const fn case(options: &'static [&'static str], state: &'static str) -> Case {
    Case { options, state, code: 0 }
}

/// The first case has no options but those that make times count. The others differ from it.
const CASES: &[Case] = &[
    case(&["-rt"], "a.tmp b=new:t big d/c e t=old:m:t"),
    case(&["-r"], "a.tmp b=new big d/c e t=old:m:t"),
    case(&["-rtl"], "a.tmp b=new:t big d/c e l t=old:m:t"),
    case(&["-rtp"], "a.tmp b=new:m:t big d/c e t=old:m:t"),
    case(&["-a"], "a.tmp b=new:m:t big d/c e l t=old:m:t"),
    case(&["-a", "--no-links"], "a.tmp b=new:m:t big d/c e t=old:m:t"),
    case(&["-a", "--no-perms"], "a.tmp b=new:t big d/c e l t=old:m:t"),
    case(&["-a", "--no-times"], "a.tmp b=new:m big d/c e l t=old:m:t"),
    case(&["-rtn"], "b=own e t=old:m:t"),
    case(&["-rtb"], "a.tmp b=new:t big d/c e t=old:m:t"),
    case(&["-rtb", "--suffix", ".bak"], "a.tmp b=new:t b.bak big d/c e t=old:m:t"),
    case(&["-rtu"], "a.tmp b=own big d/c e t=old:m:t"),
    case(&["-rt", "--existing"], "b=new:t e t=old:m:t"),
    case(&["-rt", "--ignore-existing"], "a.tmp b=own big d/c e t=old:m:t"),
    case(&["-rt", "--size-only"], "a.tmp b=own:t big d/c e t=old:m:t"),
    case(&["-rtI"], "a.tmp b=new:t big d/c e t=new:m:t"),
    case(&["-rtc"], "a.tmp b=new:t big d/c e t=new:m:t"),
    case(&["-rt", "--modify-window", "200"], "a.tmp b=own big d/c e t=old:m:t"),
    case(&["-rt", "--files-from", "lines"], "b=own d/c e t=old:m:t"),
    case(&["-rt", "--files-from", "zeros", "-0"], "b=own d/c e t=old:m:t"),
    case(&["-rt", "--max-size", "5"], "a.tmp b=new:t d/c e t=old:m:t"),
    case(&["-rt", "--min-size", "5"], "b=own big e t=old:m:t"),
    case(&["-rt", "--exclude", "*.tmp"], "b=new:t big d/c e t=old:m:t"),
    case(&["-rt", "--include", "a.tmp", "--exclude", "*"], "a.tmp b=own e t=old:m:t"),
    case(&["-rt", "--exclude-from", "patterns"], "b=new:t big d/c e t=old:m:t"),
    case(&["-rt", "--include-from", "patterns", "--exclude", "*"], "a.tmp b=own e t=old:m:t"),
    case(&["-rt", "-f", "- *.tmp"], "b=new:t big d/c e t=old:m:t"),
    case(&["-rt", "--delete"], "a.tmp b=new:t big d/c t=old:m:t"),
    case(&["-rt", "--delete", "--exclude", "e"], "a.tmp b=new:t big d/c e t=old:m:t"),
    case(&["-rt", "--delete-excluded", "--exclude", "e"], "a.tmp b=new:t big d/c t=old:m:t"),
    Case {
        options: &["-rt", "--delete", "--max-delete", "0"],
        state: "a.tmp b=new:t big d/c e t=old:m:t",
        code: 25,
    },
];

#[test]
fn options_of_sync_that_choose_what_is_written_are_honoured_on_every_way() {
    let rig = Rig::new("matrix-sync-chosen");
    fs::write(rig.at("lines"), "d/c\n").unwrap();
    fs::write(rig.at("zeros"), "d/c\0").unwrap();
    fs::write(rig.at("patterns"), "*.tmp\n").unwrap();
    for (index, Case { options, state, code }) in CASES.iter().enumerate() {
        // The far ends take turns: what is chosen is decided at this one.
        let [one, other] = [[Far::Source, Far::Target], [Far::Target, Far::Source]][index % 2];
        let stored = WAYS[6 + index % 5];
        for way in [WAYS[0], (Way::Ssh, one), (Way::Sftp, other), WAYS[3], stored] {
            rig.trees();
            let (output, said) = rig.sync(way, options);
            let kept = rig.at("target/b~").exists();
            assert_eq!(output.status.code(), Some(*code), "{way:?} {options:?}: {said}");
            if kept {
                fs::remove_file(rig.at("target/b~")).unwrap();
            }
            assert_eq!(rig.state(), *state, "{way:?} {options:?}: {said}");
            assert_eq!(kept, *options == ["-rtb"], "{way:?} {options:?}");
        }
    }
}

#[test]
fn a_source_of_sync_loses_files_only_where_it_is_meant() {
    let rig = Rig::new("matrix-sync-removed");
    for way in WAYS {
        rig.trees();
        let (output, said) = rig.sync(way, &["-rt", "--remove-source-files"]);
        assert_eq!(output.status.code(), Some(0), "{way:?}: {said}");
        assert!(!rig.at("source/b").exists() && rig.at("source/t").exists(), "{way:?}: {said}");
        // A source without any file.
        for name in ["a.tmp", "big", "d/c", "t", "l", "b"] {
            let _ = fs::remove_file(rig.at("source").join(name));
        }
        let (output, said) = rig.sync(way, &["-rt", "--delete"]);
        assert_eq!(output.status.code(), Some(6), "{way:?}: {said}");
        assert!(rig.at("target/e").exists(), "{way:?}");
        let (output, said) = rig.sync(way, &["-rt", "--delete", "--delete-all"]);
        assert_eq!(output.status.code(), Some(0), "{way:?}: {said}");
        assert!(!rig.at("target/e").exists(), "{way:?}");
    }
}

#[test]
fn an_end_of_another_kind_is_refused_by_name_on_either_side() {
    let rig = Rig::new("matrix-sync-other");
    let several = ["source/", "hikyaku://h,g/x"];
    for end in ["http://h/x", "https://h/x", "rsync://h/x", "h::x"] {
        for words in [["source/", end], [end, "target"], several] {
            rig.fill();
            let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
            command.args(["sync", "-a"]).args(words).current_dir(rig.at("")).stdin(Stdio::null());
            let output = command.env("XDG_CONFIG_HOME", rig.at("config")).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{words:?}: {said}");
            assert!(said.contains("\ntry: "), "{words:?}: {said}");
            assert_eq!(rig.made(), Vec::<PathBuf>::new(), "{words:?}: {said}");
        }
    }
}

#[test]
fn a_limit_of_sync_holds_on_every_way() {
    let rig = Rig::new("matrix-sync-limited");
    for way in WAYS {
        for limit in [["--rate", "8m"], ["--bwlimit", "1000"]] {
            rig.fill();
            fs::write(rig.at("source/large"), vec![7; 3_000_000]).unwrap();
            let begin = Instant::now();
            let (output, said) = rig.sync(way, &[&["-rt"], &limit[..]].concat());
            assert_eq!(output.status.code(), Some(0), "{way:?} {limit:?}: {said}");
            // Three seconds, less what may go at once.
            let took = begin.elapsed();
            assert!(took > Duration::from_secs(1), "{way:?} {limit:?}: {took:?}");
        }
    }
}
