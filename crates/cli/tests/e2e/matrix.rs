//! Every option of `hikyaku cp` on every way that a copy may go: it is honoured, refused, or noted in one line. The options
//! are those of the program's own table, which a test beside it compares with what the command line knows.

use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon};
use hikyaku_copy::{Class, Effect, OPTIONS, Row, Way};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::{Duration, Instant};

/// Real ends: an sshd, and a daemon that may be written to.
struct Rig {
    sshd: Sshd,
    client: Client,
    daemon: Daemon,
}

impl Rig {
    fn new(name: &str) -> Self {
        let sshd = Sshd::with_lines(name, "Subsystem sftp internal-sftp\n");
        let client = Client::new(name);
        fs::create_dir(client.at("root")).unwrap();
        let keys = client.authorized("keys", "");
        let daemon = Daemon::start_with(&client, &client.at("root"), &keys, &["--writable"]);
        Self { sshd, client, daemon }
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
        }
    }

    /// Copies with these options and nothing else.
    fn run(&self, way: Way, options: &[String]) -> (Output, String) {
        let (source, target, more) = self.ends(way);
        let mut command = self.client.command(&["cp"]);
        if matches!(way, Way::Ssh | Way::Through | Way::Sftp) {
            command.args(["-F", &self.sshd.at("ssh_config").display().to_string()]);
        }
        if matches!(way, Way::Ssh | Way::Through) {
            command.args(["--remote-path", env!("CARGO_BIN_EXE_hikyaku")]);
        }
        command.args(more).args(options).args(["--", &source, &target]);
        command.env("XDG_CONFIG_HOME", self.at("config")).env("HOME", self.at(""));
        let output = command.current_dir(self.at("")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        (output, said)
    }
}

/// An option as it is typed, with a value that it takes and with what it requires.
fn typed(row: &Row) -> Vec<String> {
    let value = match row.id {
        "limit" | "server_rate" => "1g",
        "port" => "22",
        "identity" | "config" | "files_from" | "remote_path" => "list",
        "far_binary" => env!("CARGO_BIN_EXE_hikyaku"),
        "jump" | "primary" => "hop",
        "option" => "LogLevel=ERROR",
        "program" => "ssh",
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
        _ => "",
    };
    let required: &[&str] = match row.id {
        "from0" => &["--files-from", "list"],
        "primary" => &["--start-servers"],
        _ => &[],
    };
    let own = [row.flag, value].into_iter().filter(|word| !word.is_empty());
    required.iter().copied().chain(own).map(str::to_owned).collect()
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
    let rig = Rig::new("matrix-refused");
    filled(&rig.at("source"));
    filled(&rig.at("root/source"));
    fs::write(rig.at("list"), "source\n").unwrap();
    for row in OPTIONS.iter().filter(|row| row.class == Class::Protects) {
        for way in Way::ALL {
            if !matches!(row.effect(way, &[]), Effect::Refused | Effect::Nothing) {
                continue;
            }
            if (row.id, way) == ("via", Way::Sftp) {
                continue;
            }
            let (output, said) = rig.run(way, &typed(row));
            assert_eq!(output.status.code(), Some(1), "{} {way:?}: {said}", row.flag);
            let is_named = said.contains(&row.refusal(way)) || said.contains("--start-servers has");
            assert!(is_named && said.contains("\ntry: "), "{} {way:?}: {said}", row.flag);
            assert_eq!(made(&rig), Vec::<PathBuf>::new(), "{} {way:?}: {said}", row.flag);
        }
    }
}

#[test]
fn any_other_option_without_effect_is_noted_in_one_line() {
    let rig = Rig::new("matrix-noted");
    fs::write(rig.at("list"), "source\n").unwrap();
    for way in Way::ALL {
        filled(&rig.at("source"));
        filled(&rig.at("root/source"));
        let idle: Vec<&Row> = OPTIONS
            .iter()
            .filter(|row| row.class == Class::Convenience)
            .filter(|row| row.effect(way, &[]) == Effect::Nothing)
            // The daemons of this option change what others do.
            .filter(|row| !["gfarm_daemons", "start_servers"].contains(&row.id))
            .collect();
        let options: Vec<String> = idle.iter().flat_map(|row| typed(row)).collect();
        let (output, said) = rig.run(way, &options);
        for row in &idle {
            let note = format!("hikyaku: {}\n", row.note(way));
            assert_eq!(said.matches(&note).count(), 1, "{way:?} {note}: {said}");
        }
        let is_here = matches!(way, Way::Here | Way::Ssh | Way::Through | Way::Sftp);
        if is_here || matches!(way, Way::FromDaemons | Way::ToDaemons) {
            assert_eq!(output.status.code(), Some(0), "{way:?}: {said}");
        }
        let quiet = [vec!["-q".to_owned()], options].concat();
        let (_, said) = rig.run(way, &quiet);
        assert!(!said.contains("has no effect"), "{way:?}: {said}");
        made(&rig).iter().for_each(|path| drop(fs::remove_file(path)));
    }
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
    let ways = [Way::Here, Way::Ssh, Way::Through, Way::Sftp, Way::FromDaemons, Way::ToDaemons];
    for way in ways {
        let dir = |name: &str, at: Way| rig.at(if way == at { "root" } else { "" }).join(name);
        let (source, target) = (dir("source", Way::FromDaemons), dir("target", Way::ToDaemons));
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

fn words(options: &[&str]) -> Vec<String> {
    options.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_limit_holds_on_every_way_with_a_real_end() {
    let rig = Rig::new("matrix-limited");
    for name in ["source", "root/source"] {
        fs::write(rig.at(name), vec![7; 3_000_000]).unwrap();
    }
    let limit: &[&str] = &["-l", "8m"];
    let of_servers: &[&str] = &["--server-rate", "8m"];
    let all = [Way::Here, Way::Ssh, Way::Through, Way::Sftp, Way::FromDaemons, Way::ToDaemons];
    let limits = all.map(|way| (way, limit)).into_iter().chain([(Way::FromDaemons, of_servers)]);
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
    for way in [Way::Here, Way::Ssh, Way::Through] {
        fs::write(rig.at("target"), "old").unwrap();
        let before = fs::metadata(rig.at("target")).unwrap().ino();
        for (options, is_same_file) in [(&["--inplace"][..], true), (&["--verify"], false)] {
            let (output, said) = rig.run(way, &words(options));
            assert_eq!(output.status.code(), Some(0), "{way:?} {options:?}: {said}");
            let after = fs::metadata(rig.at("target")).unwrap().ino();
            assert_eq!(before == after, is_same_file, "{way:?} {options:?}");
            assert_eq!(fs::read_to_string(rig.at("target")).unwrap(), "new", "{way:?}");
        }
    }
    for way in [Way::Here, Way::Ssh] {
        let (output, said) = rig.run(way, &words(&["--manifest", "name"]));
        assert_eq!(output.status.code(), Some(0), "{way:?}: {said}");
        let manifest = fs::read_to_string(rig.at("name")).unwrap();
        assert!(manifest.ends_with("  source\n") || manifest.ends_with("  target\n"), "{manifest}");
        fs::remove_file(rig.at("name")).unwrap();
    }
    // The same of what carries the data.
    fs::write(rig.at("root/source"), "new").unwrap();
    for (options, wanted) in
        [(&["--no-udp"][..], true), (&["--via", "tcp"], true), (&["-v"], false)]
    {
        let (output, said) = rig.run(Way::FromDaemons, &words(options));
        assert_eq!(output.status.code(), Some(0), "{options:?}: {said}");
        assert_eq!(said.contains("is reached over TCP"), wanted, "{options:?}: {said}");
    }
}
