//! Downloads that are killed at each of their steps: the same command again succeeds, and nothing else is left.
//!
//! strace ends the program before its n-th call of each of those that change a directory or bring a file to the disk, for each
//! n until the program comes to its end. Without strace nothing is tested.

use crate::common::daemon::{Client, Daemon};
use crate::common::proxy::server;
use crate::common::web::Request;
use crate::common::{Sshd, gridftp_folder, scratch, skipped};
use std::fs;
use std::io::{BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use xtask::servers::gridftp;

/// Before each of these calls the program may end.
const STEPS: [&str; 7] =
    ["flock", "/^rename", "/^unlink", "/^mkdir", "/^f(data)?sync$", "ftruncate", "fchmod"];
/// More calls than any of these downloads makes in one thread.
const CALLS_MAX: usize = 200;

/// The same command, ended before its `number`-th call of this kind in one of its threads.
fn killed_at(command: &Command, step: &str, number: usize) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o", "/dev/null", "-e"]).arg(format!("trace={step}"));
    strace.arg("-e").arg(format!("inject={step}:signal=KILL:when={number}"));
    strace.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        strace.current_dir(folder);
    }
    strace
}

fn paths(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(paths(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

/// What a download is to bring about.
struct Wanted<'a> {
    /// Its folder.
    got: &'a Path,
    /// All that is in it afterwards.
    files: &'a [(&'a str, Vec<u8>)],
    /// Folders of what is kept for a later attempt, in which nothing is recorded afterwards.
    state: &'a [PathBuf],
}

/// Ends the download at each step. The same command once more has to succeed.
fn judge(command: impl Fn() -> Command, wanted: &Wanted<'_>) {
    let kills: usize = STEPS.iter().map(|step| judge_step(&command, wanted, step)).sum();
    assert!(kills > 5, "it was killed {kills} times only");
}

/// Returns how often it was killed.
fn judge_step(command: &impl Fn() -> Command, wanted: &Wanted<'_>, step: &str) -> usize {
    for number in 1..=CALLS_MAX {
        let at = format!("{step} {number}");
        for folder in wanted.state.iter().map(PathBuf::as_path).chain([wanted.got]) {
            let _ = fs::remove_dir_all(folder);
        }
        fs::create_dir_all(wanted.got).unwrap();
        let first = killed_at(&command(), step, number).stdin(Stdio::null()).output().unwrap();
        let is_whole = first.status.success();
        if !is_whole {
            let output = command().stdin(Stdio::null()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{at}: {said}");
        }
        let names: Vec<_> = wanted.files.iter().map(|(name, _)| wanted.got.join(name)).collect();
        assert_eq!(paths(wanted.got), names, "{at}");
        for (name, bytes) in wanted.files {
            assert!(fs::read(wanted.got.join(name)).unwrap() == *bytes, "{at}: {name}");
        }
        for folder in wanted.state {
            // One that was killed before it could note anything has left an empty file, which is removed after a minute.
            let is_empty = |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| meta.len() == 0);
            let mut left = paths(folder);
            left.retain(|path| !is_empty(path));
            assert_eq!(left, Vec::<PathBuf>::new(), "{at}");
        }
        if is_whole {
            return number - 1;
        }
    }
    panic!("{step}: more than {CALLS_MAX} calls");
}

fn has_strace() -> bool {
    let is_there = xtask::on_path("strace");
    if !is_there {
        skipped("downloads that are killed at each step", "strace is not installed");
    }
    is_there
}

/// Files for a tree: small ones, and one that goes by itself.
fn contents() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a", vec![1; 1_000]),
        ("b", vec![2; 2_000]),
        ("d/c", vec![3; 30]),
        ("large", vec![4; 6_000_000]),
    ]
}

fn write_tree(folder: &Path) {
    for (name, bytes) in contents() {
        fs::create_dir_all(folder.join(name).parent().unwrap()).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    }
}

fn answer(stream: TcpStream, bytes: &[u8]) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = Request::read(&mut reader)? {
        let is_whole = request.word(1).starts_with("/whole");
        let range = request.range(bytes.len()).unwrap_or(0..bytes.len());
        let head = match is_whole {
            true => format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", bytes.len()),
            false => format!(
                "HTTP/1.1 206 Part\r\nETag: \"a\"\r\nContent-Length: {}\r\nContent-Range: bytes {}-{}/{}\r\n\r\n",
                range.len(),
                range.start,
                range.end - 1,
                bytes.len()
            ),
        };
        reader.get_mut().write_all(head.as_bytes())?;
        reader.get_mut().write_all(if is_whole { bytes } else { &bytes[range] })?;
    }
    Ok(())
}

#[test]
fn a_file_of_a_web_server() {
    if !has_strace() {
        return;
    }
    let folder = scratch("killed-get");
    let bytes = vec![5; 9_000_000];
    let served = bytes.clone();
    // An error means that the client has gone.
    let port = server(move |stream| drop(answer(stream, &served)));
    let got = folder.join("got");
    // In parts, and as a stream.
    for name in ["parts", "whole"] {
        let command = || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
            command.args(["get", "-n", "2", &format!("http://127.0.0.1:{port}/{name}")]);
            command.env("XDG_STATE_HOME", folder.join("state")).current_dir(&got);
            command
        };
        let files = [(name, bytes.clone())];
        let state = [folder.join("state/hikyaku/copies"), folder.join("state/hikyaku/begun")];
        judge(command, &Wanted { got: &got, files: &files, state: &state });
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn files_of_a_gridftp_server() {
    if !has_strace() {
        return;
    }
    let Some(folder) = gridftp_folder("killed-guc") else { return };
    let server = gridftp::up(&folder.join("server"), IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
    write_tree(&server.data.join("t"));
    let (got, state) = (folder.join("got"), folder.join("state"));
    let guc = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.arg("guc").args(words).env("XDG_STATE_HOME", &state).current_dir(&got);
        command
    };
    let left = ["hikyaku/copies", "hikyaku/begun"].map(|name| state.join(name));
    let url = format!("{}/t/", server.url);
    let wanted = Wanted { got: &got, files: &contents(), state: &left };
    judge(|| guc(&["-r", &url, "./"]), &wanted);
    gridftp::down(&folder.join("server")).unwrap();
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn files_of_a_host_with_sftp_only() {
    if !has_strace() {
        return;
    }
    let sshd = Sshd::with_lines("killed-sftp", "Subsystem sftp internal-sftp\n");
    write_tree(&sshd.at("t"));
    let got = sshd.at("got");
    let target = got.display().to_string();
    let command = || {
        let mut command = sshd.cp(&["-r", &sshd.far("t/."), &target]);
        command.args(["--remote-path", "no-such-hikyaku"]).env("XDG_STATE_HOME", sshd.at("state"));
        command
    };
    let left = ["hikyaku/copies", "hikyaku/begun"].map(|name| sshd.at("state").join(name));
    judge(command, &Wanted { got: &got, files: &contents(), state: &left });
}

#[test]
fn files_of_a_daemon() {
    if !has_strace() {
        return;
    }
    let client = Client::new("killed-daemon");
    write_tree(&client.at("served/t"));
    let keys = client.authorized("keys", "");
    let daemon = Daemon::start(&client, &client.at("served"), &keys);
    let (from, to) =
        (format!("hikyaku://{}/t", daemon.address), client.at("got").display().to_string());
    let left = ["begun", "copies"].map(|folder| client.at("state/hikyaku").join(folder));
    let command = || client.command(&["cp", "-r", &from, &to]);
    judge(command, &Wanted { got: &client.at("got/t"), files: &contents(), state: &left });
}
