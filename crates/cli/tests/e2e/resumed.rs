//! A copy that is ended in its middle, and the same command again, for each pair of kinds of source and target. Where the source
//! has a version and the target takes unfinished files up, at most 64 MB are sent twice; elsewhere no whole file is. The sentence
//! of a stopped command names which of the two it is.

use crate::common::daemon::{Client, Daemon, said};
use crate::common::web::Web;
use crate::common::{Sshd, random};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use xtask::servers::ftp::{PlainFtp, Style};

/// The storage of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Here,
    /// A host by ssh, with hikyaku.
    Ssh,
    /// A host by ssh, without hikyaku.
    Sftp,
    Daemon,
    Ftp,
    /// As a source only, and only of the large file: the server sends no time by which complete files are found again.
    Web,
}

/// The part of the first run that the second one finds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    /// Complete files, and unfinished ones but for their last 64 MB.
    Bytes,
    /// Complete files.
    Files,
}

/// How the first run ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    Killed,
    /// As by Ctrl-C.
    Stopped,
}

/// The files of a source: small ones, and one that is larger than the part that may be sent twice.
const SMALL_FILES: usize = 6;
const SMALL_BYTES: usize = 1 << 20;
const LARGE_BYTES: usize = 192 << 20;
/// The first run is ended when it has copied this many bytes: more than may be sent twice, and seconds before its end.
const ENDED_AT: u64 = 96 << 20;
/// Bytes that may be sent twice.
const TWICE_BYTES: u64 = 64_000_000;
/// Bytes that may be on the way when a run is ended.
const UNDER_WAY: u64 = 16 << 20;

/// One end of each kind. All of them are directories of this machine.
struct Rig {
    client: Client,
    sshd: Sshd,
    daemon: Daemon,
    ftp: PlainFtp,
    web: Web,
}

fn name(number: usize) -> String {
    format!("small{number}")
}

impl Rig {
    fn up(name_of_rig: &str) -> Self {
        let client = Client::new(name_of_rig);
        let sshd = Sshd::with_lines(
            &format!("{name_of_rig}-host"),
            "Subsystem sftp internal-sftp\nMaxStartups 100\n",
        );
        fs::create_dir(client.at("tree")).unwrap();
        let mut files = vec![("large".to_owned(), random(1, LARGE_BYTES))];
        files.extend((0..SMALL_FILES).map(|n| (name(n), random(n as u64, SMALL_BYTES))));
        for (name, bytes) in &files {
            fs::write(client.at("tree").join(name), bytes).unwrap();
        }
        let keys = client.authorized("keys", "");
        let daemon = Daemon::start_with(&client, &client.at(""), &keys, &["--writable"]);
        let ftp = PlainFtp::start(&client.at(""), Style::Facts).unwrap();
        let web = Web::start(&[("large", files.swap_remove(0).1)]);
        Self { web, client, sshd, daemon, ftp }
    }

    /// The directory `dir` of an end as a user writes it.
    fn typed(&self, kind: Kind, dir: &str) -> String {
        let path = self.client.at(dir).display().to_string();
        match kind {
            Kind::Here => path,
            Kind::Ssh | Kind::Sftp => format!("far:{path}"),
            Kind::Daemon => format!("hikyaku://{}/{dir}", self.daemon.address),
            Kind::Ftp => format!("{}/{dir}", self.ftp.url()),
            Kind::Web => self.web.url(dir),
        }
    }

    fn cp(&self, [from, to]: [Kind; 2], limit: &[&str], dir: &str) -> Command {
        let source = match from {
            Kind::Web => self.web.url("large"),
            from => self.typed(from, "tree/."),
        };
        let config = self.sshd.at("ssh_config").display().to_string();
        let is_sftp = [from, to].contains(&Kind::Sftp);
        let program = if is_sftp { "no-such-hikyaku" } else { env!("CARGO_BIN_EXE_hikyaku") };
        let mut command = self.client.command(&["cp", "--json-lines"]);
        command.args(limit).args(if from == Kind::Web { &[][..] } else { &["-rp"] });
        if [from, to].iter().any(|end| matches!(end, Kind::Ssh | Kind::Sftp)) {
            command.args(["-F", &config, "--remote-path", program]);
        }
        command.arg(source).arg(self.typed(to, dir));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// The bytes of all files of a source.
fn size(dir: &Path) -> u64 {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// Reads the events of a copy until it has copied [`ENDED_AT`] bytes. Returns their number.
fn progress(events: &mut impl BufRead) -> Option<u64> {
    let mut line = String::new();
    loop {
        line.clear();
        if events.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let event: serde_json::Value = serde_json::from_str(&line).ok()?;
        let bytes = event["bytes"].as_u64().unwrap_or_default();
        if bytes >= ENDED_AT {
            return Some(bytes);
        }
    }
}

/// The complete files of a directory: the identity and the size of each.
fn complete(dir: &Path) -> BTreeMap<OsString, (u64, u64)> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let files = entries.filter(|entry| {
        let name = entry.file_name();
        name == "large" || name.as_encoded_bytes().starts_with(b"small")
    });
    files
        .filter_map(|file| {
            let meta = file.metadata().ok()?;
            Some((file.file_name(), (meta.ino(), meta.size())))
        })
        .collect()
}

/// Bytes that a run has sent.
fn sent(output: &Output) -> u64 {
    let text = String::from_utf8_lossy(&output.stdout);
    let end = serde_json::from_str(text.lines().last().unwrap_or_default());
    let end: serde_json::Value = end.unwrap_or_else(|error| panic!("{error}: {text}"));
    end["bytes"].as_u64().unwrap() - end["kept_bytes"].as_u64().unwrap()
}

/// Ends a copy in its middle, runs the same command again, and compares the bytes that both have sent.
fn check(rig: &Rig, ends: [Kind; 2], found: Found, end: End) {
    let dir = "to";
    let made = rig.client.at(dir);
    let _ = fs::remove_dir_all(&made);
    fs::create_dir(&made).unwrap();
    let tree = rig.client.at("tree");
    let total = if ends[0] == Kind::Web { LARGE_BYTES as u64 } else { size(&tree) };
    let mut child = rig.cp(ends, &["-l", "320m"], dir).spawn().unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap());
    let Some(first_bytes) = progress(&mut events) else {
        let output = child.wait_with_output().unwrap();
        panic!("{ends:?}: the copy was over: {}", said(&output));
    };
    let signal = if end == End::Killed { "-KILL" } else { "-INT" };
    assert!(
        Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success()
    );
    let first = child.wait_with_output().unwrap();
    drop(events);
    let kept = complete(&made);
    let kept_bytes: u64 = kept.values().map(|(_, size)| size).sum();
    assert!(!kept.contains_key(&OsString::from("large")), "{ends:?}: the copy was over");
    if end == End::Stopped {
        let words = match found {
            Found::Bytes => "the same command continues from here",
            Found::Files if kept.is_empty() => "stopped",
            Found::Files => "the same command copies the others",
        };
        assert!(said(&first).contains(words), "{ends:?}: {}", said(&first));
    }
    let second = rig.cp(ends, &[], dir).output().unwrap();
    assert!(second.status.success(), "{ends:?} {end:?}: {}", said(&second));
    let sent = sent(&second);
    println!(
        "{ends:?} {end:?}: {kept_bytes} bytes were complete, {sent} of {total} were sent again"
    );
    match found {
        Found::Bytes => {
            let most = total.saturating_sub(first_bytes) + TWICE_BYTES + UNDER_WAY;
            assert!(sent <= most, "{ends:?} {end:?}: {sent} bytes were sent, not {most}");
        }
        // The large file goes again, and no complete one.
        Found::Files => assert!(
            sent <= total - kept_bytes && sent >= LARGE_BYTES as u64,
            "{ends:?} {end:?}: {sent} bytes were sent, {kept_bytes} of {total} were complete"
        ),
    }
    let after = complete(&made);
    for (name, file) in &kept {
        assert_eq!(after.get(name), Some(file), "{ends:?} {end:?}: {name:?} was replaced");
    }
    // The unfinished file of a killed run may still be on a server.
    assert_eq!(after.values().map(|(_, size)| size).sum::<u64>(), total, "{ends:?} {end:?}");
    for name in after.keys() {
        let is_same = fs::read(tree.join(name)).unwrap() == fs::read(made.join(name)).unwrap();
        assert!(is_same, "{ends:?} {end:?}: {name:?} differs");
    }
}

fn check_all(name: &str, pairs: &[([Kind; 2], Found)]) {
    let rig = Rig::up(name);
    for (ends, found) in pairs {
        for end in [End::Killed, End::Stopped] {
            check(&rig, *ends, *found, end);
        }
    }
}

use Kind::{Daemon as D, Ftp, Here, Sftp, Ssh, Web as W};

#[test]
fn a_copy_onto_this_host_is_continued_within_its_files() {
    let all = [Here, Ssh, Sftp, D, Ftp, W];
    check_all("resumed-here", &all.map(|from| ([from, Here], Found::Bytes)));
}

#[test]
fn a_copy_from_this_host_is_continued() {
    let to = |to, found| ([Here, to], found);
    let pairs =
        [to(Ssh, Found::Bytes), to(Sftp, Found::Bytes), to(D, Found::Files), to(Ftp, Found::Bytes)];
    check_all("resumed-away", &pairs);
}

#[test]
fn a_copy_between_two_hosts_is_continued_within_its_files() {
    check_all("resumed-through", &[([Ssh, Ssh], Found::Bytes)]);
}

#[test]
#[ignore = "minutes"]
fn a_copy_between_any_two_storages_is_continued() {
    let mut pairs = Vec::new();
    for from in [Ssh, Sftp, D, Ftp, W] {
        for to in [Ssh, Sftp, D, Ftp] {
            let is_of_hosts = |kind| matches!(kind, Ssh | Sftp);
            if !(is_of_hosts(from) && is_of_hosts(to)) {
                let found = if to == Ftp { Found::Bytes } else { Found::Files };
                pairs.push(([from, to], found));
            }
        }
    }
    check_all("resumed-between", &pairs);
}
