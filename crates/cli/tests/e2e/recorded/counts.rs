//! The number of requests that a command sends to a server, which the load of the machine does not change. The number of the
//! parts of a large upload over FTP depends on the load, and is compared with its largest possible value.
//!
//! Counted are the packets of SFTP by a server whose input is recorded, the commands of FTP by a relay of the control
//! channel, and the requests of HTTP by the server of the tests. The numbers in `recorded/counts.txt` may only fall: a
//! run that needs more of any of them fails, and `HIKYAKU_RECORD=1` writes the numbers of a run.

use super::{Begin, Ground, RECORD, run};
use crate::common::web::Web;
use crate::common::{Sshd, gridftp_folder, random, wait_until};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use xtask::servers::gridftp;

const SFTP_SERVER: &str = "/usr/lib/openssh/sftp-server";
const LARGE_BYTES: usize = 16_000_000;
const SMALL_BYTES: usize = 10_000;
const SMALL_FILES: usize = 1000;
const DIRS: usize = 300;
/// Bytes that an upload over FTP takes at once. While a part is under way, blocks wait until they fill another one, so that on an
/// idle machine a part has several blocks.
const BLOCK_BYTES: usize = 1 << 20;

/// The numbers of requests by their titles, which end with the kind of request.
#[derive(Default)]
pub(super) struct Counts(BTreeMap<String, usize>);

impl Counts {
    pub(super) fn add(&mut self, title: &str, kinds: impl IntoIterator<Item = String>) {
        for kind in kinds {
            *self.0.entry(format!("{title}: {kind}")).or_default() += 1;
        }
    }

    /// Compares the numbers with the lines of a protocol in the file, or writes those lines.
    pub(super) fn check(&self, protocol: &str) {
        // The tests of several protocols write one file.
        static FILE: Mutex<()> = Mutex::new(());
        let _lock = FILE.lock().unwrap_or_else(PoisonError::into_inner);
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/e2e/recorded/counts.txt");
        let text = fs::read_to_string(&path).unwrap_or_default();
        let recorded: BTreeMap<String, usize> = text
            .lines()
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(title, number)| (title.to_owned(), number.parse().unwrap()))
            .collect();
        let is_own = |title: &str| title.starts_with(&format!("{protocol} "));
        if std::env::var_os(RECORD).is_some() {
            let others = recorded.into_iter().filter(|(title, _)| !is_own(title));
            let all: BTreeMap<_, _> = others.chain(self.0.clone()).collect();
            let lines = all.iter().map(|(title, number)| format!("{title} {number}\n"));
            fs::write(path, lines.collect::<String>()).unwrap();
            return;
        }
        let growth = |(title, number): (&String, &usize)| {
            let allowed = recorded.get(title).copied().unwrap_or(0);
            (*number > allowed).then(|| format!("{title}: {number}, and {allowed} are recorded\n"))
        };
        let growths: String = self.0.iter().filter_map(growth).collect();
        assert!(growths.is_empty(), "{growths}");
    }
}

/// A large file, many small ones, and directories, below `from`.
pub(super) fn sources(from: &Path) {
    fs::create_dir_all(from.join("small")).unwrap();
    fs::write(from.join("large"), random(1, LARGE_BYTES)).unwrap();
    for number in 0..SMALL_FILES {
        fs::write(from.join(format!("small/{number}")), random(2, SMALL_BYTES)).unwrap();
    }
    for number in 0..DIRS {
        fs::create_dir_all(from.join(format!("dirs/{number}"))).unwrap();
    }
}

/// The sources, and the options with which each is copied.
pub(super) const SOURCES: [(&str, &[&str]); 3] =
    [("large", &[]), ("small", &["-r"]), ("dirs", &["-r"])];

#[test]
fn sftp_packets_do_not_grow() {
    if !Path::new(SFTP_SERVER).exists() {
        return crate::common::skipped("packets of SFTP", "no sftp-server of OpenSSH");
    }
    let ground = Ground::new("counted-sftp");
    let (script, logs) = (ground.at("server"), ground.at("logs"));
    fs::create_dir(&logs).unwrap();
    let log = format!("{}/$$", logs.display());
    fs::write(&script, format!("#!/bin/sh\ntee {log} | {SFTP_SERVER}\n: > {log}.end\n")).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let sshd = Sshd::with_lines("counted-sftp", &format!("Subsystem sftp {}\n", script.display()));
    sources(&ground.at("from"));
    let mut counts = Counts::default();
    let config = sshd.at("ssh_config").display().to_string();
    for verb in ["cp up", "cp down", "sync up", "sync down"] {
        for (source, options) in SOURCES {
            let _ = fs::remove_dir_all(ground.at("to"));
            fs::create_dir_all(ground.at("to")).unwrap();
            for begin in [Begin::New, Begin::Again] {
                let far = |name: &str| format!("far:{}", ground.path(name));
                let from = format!("from/{source}");
                let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
                match verb.starts_with("cp") {
                    true => {
                        command.args(["cp", "-p", "--via", "sftp", "-F", &config]).args(options)
                    }
                    false => command
                        .args(["sync", "-a", "--remote-path", "no-such-hikyaku"])
                        .args(["-e", &format!("ssh -F {config}")]),
                };
                match verb.ends_with("up") {
                    true => command.args([ground.path(&from), far("to")]),
                    false => command.args([far(&from), ground.path("to")]),
                };
                ground.is_home_of(&mut command);
                let output = run(command);
                let said = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{verb} {source}: {said}");
                let title = format!("sftp {verb}, {source}, {}", begin.name());
                counts.add(&title, packets(&logs));
            }
        }
    }
    counts.check("sftp");
}

/// The packets of all sessions since the last call, which ends when all of them have ended.
fn packets(logs: &Path) -> Vec<String> {
    let files = || -> Vec<PathBuf> {
        fs::read_dir(logs).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let is_end = |path: &Path| path.extension().is_some_and(|end| end == "end");
    wait_until("all sessions end", || {
        let all = files();
        let ends = all.iter().filter(|path| is_end(path)).count();
        ends > 0 && ends * 2 == all.len()
    });
    let mut kinds = Vec::new();
    for path in files() {
        if !is_end(&path) {
            let bytes = fs::read(&path).unwrap();
            let mut rest = &bytes[..];
            while let Some((length, body)) = rest.split_first_chunk::<4>() {
                let length = u32::from_be_bytes(*length) as usize;
                kinds.extend(body.first().map(|kind| packet(*kind)));
                rest = body.get(length..).unwrap_or_default();
            }
        }
        fs::remove_file(&path).unwrap();
    }
    kinds
}

/// The name of a packet of SFTP (draft-ietf-secsh-filexfer-02, section 3).
fn packet(kind: u8) -> String {
    let names = [
        (1, "init"),
        (3, "open"),
        (4, "close"),
        (5, "read"),
        (6, "write"),
        (7, "lstat"),
        (8, "fstat"),
        (9, "setstat"),
        (10, "fsetstat"),
        (11, "opendir"),
        (12, "readdir"),
        (13, "remove"),
        (14, "mkdir"),
        (15, "rmdir"),
        (16, "realpath"),
        (17, "stat"),
        (18, "rename"),
        (19, "readlink"),
        (20, "symlink"),
        (200, "extended"),
    ];
    let name = names.iter().find(|(number, _)| *number == kind);
    name.map_or_else(|| kind.to_string(), |(_, name)| (*name).to_owned())
}

#[test]
fn http_requests_do_not_grow() {
    let ground = Ground::new("counted-http");
    let many: Vec<String> = (0..100).map(|number| format!("small{number}")).collect();
    let mut files = vec![("large", random(1, LARGE_BYTES))];
    files.extend(many.iter().map(|name| (name.as_str(), random(2, SMALL_BYTES))));
    let web = Web::start(&files);
    let mut counts = Counts::default();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    for (title, names) in [("large", &["large"][..]), ("small", &many)] {
        let _ = fs::remove_dir_all(ground.at("to"));
        fs::create_dir_all(ground.at("to")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.args(["get", "-n", "1"]).args(names.iter().map(|name| web.url(name)));
        command.current_dir(ground.at("to")).env_remove("http_proxy").env_remove("all_proxy");
        ground.is_home_of(&mut command);
        let output = run(command);
        assert!(output.status.success(), "{title}: {}", String::from_utf8_lossy(&output.stderr));
        counts.add(&format!("http get, {title}"), web.methods());
    }
    counts.check("http");
}

#[test]
fn ftp_commands_do_not_grow() {
    let Some(folder) = gridftp_folder("counted-ftp") else { return };
    let ground = Ground::new("counted-ftp-here");
    let server = gridftp::up(&folder, IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
    let address = server.url.trim_start_matches("ftp://").split('/').next().unwrap();
    let relay = Relay::start(address);
    let far = server.url.replace(address, &format!("127.0.0.1:{}", relay.port));
    sources(&ground.at("from"));
    sources(&server.data.join("from"));
    fs::set_permissions(&server.data, fs::Permissions::from_mode(0o777)).unwrap();
    let mut counts = Counts::default();
    for way in ["up", "down"] {
        for (source, _) in SOURCES {
            let [up, down] = [server.data.join("to"), ground.at("to")];
            for dir in [&up, &down] {
                let _ = fs::remove_dir_all(dir);
                fs::create_dir_all(dir).unwrap();
                fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
            }
            let slash = if source == "large" { "" } else { "/" };
            let [from, to] = ["from", "to"].map(|dir| format!("{dir}/{source}{slash}"));
            let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
            command.args(["guc", "-r", "-cd", "-cc", "1", "-p", "2"]);
            match way {
                "up" => command.args([ground.path(&from), format!("{far}/{to}")]),
                _ => command.args([format!("{far}/{from}"), ground.path(&to)]),
            };
            ground.is_home_of(&mut command);
            let output = run(command);
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{way} {source}: {said}");
            let mut commands = relay.commands();
            if (way, source) == ("up", "large") {
                let all = commands.len();
                commands.retain(|name| name != "ESTO");
                let parts = all - commands.len();
                assert!((1..=LARGE_BYTES.div_ceil(BLOCK_BYTES)).contains(&parts), "{parts} parts");
            }
            counts.add(&format!("ftp guc {way}, {source}"), commands);
        }
    }
    let _ = gridftp::down(&folder);
    let _ = fs::remove_dir_all(&folder);
    counts.check("ftp");
}

/// Relays control channels to a server and records the commands.
struct Relay {
    port: u16,
    seen: Arc<Mutex<Seen>>,
}

/// What passed the relay.
#[derive(Default)]
struct Seen {
    commands: Vec<String>,
    /// Control channels that their clients have not closed yet.
    open: usize,
}

impl Relay {
    fn start(server: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (seen, server) = (Arc::<Mutex<Seen>>::default(), server.to_owned());
        let recorded = Arc::clone(&seen);
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let far = TcpStream::connect(&server).unwrap();
                let (seen, answers) = (Arc::clone(&recorded), far.try_clone().unwrap());
                let back = near.try_clone().unwrap();
                seen.lock().unwrap().open += 1;
                // An error means that the client has closed the connection.
                thread::spawn(move || std::io::copy(&mut &answers, &mut &back));
                thread::spawn(move || {
                    let _ = commands(&near, &far, &seen);
                    seen.lock().unwrap().open -= 1;
                });
            }
        });
        Self { port, seen }
    }

    /// The commands since the last call. The relay may read the last one after its client has ended.
    fn commands(&self) -> Vec<String> {
        wait_until("all control channels are closed", || self.seen.lock().unwrap().open == 0);
        std::mem::take(&mut self.seen.lock().unwrap().commands)
    }
}

fn commands(near: &TcpStream, far: &TcpStream, seen: &Mutex<Seen>) -> std::io::Result<()> {
    for line in BufReader::new(near).split(b'\n') {
        let mut line = line?;
        let text = String::from_utf8_lossy(&line).into_owned();
        let name = text.split_whitespace().next().unwrap_or_default().to_owned();
        seen.lock().unwrap().commands.push(name);
        line.push(b'\n');
        let mut far = far;
        far.write_all(&line)?;
    }
    Ok(())
}
