//! `hikyaku get`, ended by signals: what it says, and what a program is told.

use crate::common::proxy::server;
use crate::common::scratch;
use crate::common::web::Request;
use crate::terminal::stopped as terminal;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Bytes of the file of the server below.
const BYTES: usize = 64 << 20;

/// What a server says of its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Says {
    /// Its version, and it gives parts.
    Version,
    /// It gives parts, and says nothing of a version.
    NoVersion,
    /// It gives the whole only.
    NoParts,
}

/// A web server whose file comes slowly. Returns its port.
fn serve(says: Says) -> u16 {
    // An error means that the client has gone.
    server(move |stream| drop(answer(stream, says)))
}

fn answer(stream: TcpStream, says: Says) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(request) = Request::read(&mut reader)? {
        let range = request.range(BYTES);
        let range = range.filter(|_| says != Says::NoParts);
        let status = if range.is_some() { "206 Part" } else { "200 OK" };
        let part = range.clone().unwrap_or(0..BYTES);
        let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", part.len());
        if range.is_some() {
            let (first, last) = (part.start, part.end - 1);
            head.push_str(&format!("Content-Range: bytes {first}-{last}/{BYTES}\r\n"));
        }
        if says == Says::Version {
            head.push_str("ETag: \"a\"\r\n");
        }
        reader.get_mut().write_all(format!("{head}\r\n").as_bytes())?;
        for at in part.clone().step_by(256 << 10) {
            reader.get_mut().write_all(&vec![7; (part.end - at).min(256 << 10)])?;
            sleep(Duration::from_millis(50));
        }
    }
    Ok(())
}

fn client(folder: &Path, port: u16) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
    let url = format!("http://127.0.0.1:{port}/f");
    command.args(["get", "--json-lines", "-n", "1", "-o", "f", &url]).current_dir(folder);
    command.env("XDG_STATE_HOME", state_of(folder)).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// The state folder of the downloads in a folder.
fn state_of(folder: &Path) -> PathBuf {
    folder.with_extension("state")
}

/// The bytes of an earlier download that the same command uses.
fn kept_bytes(folder: &Path, port: u16) -> u64 {
    let mut client = client(folder, port);
    let events = BufReader::new(client.stdout.take().unwrap()).lines();
    let mut events =
        events.map(|line| serde_json::from_str::<serde_json::Value>(&line.unwrap()).unwrap());
    let begun = events.find(|event| event["bytes"].as_u64() > event["kept_bytes"].as_u64());
    kill_process(Pid::from_child(&client), Signal::KILL).unwrap();
    client.wait().unwrap();
    begun.unwrap()["kept_bytes"].as_u64().unwrap()
}

/// Ends a download by a signal as soon as something has come.
fn ended(folder: &Path, port: u16, signal: Signal) -> Output {
    let client = client(folder, port);
    let has_come = || {
        let entries = fs::read_dir(folder).unwrap().flatten();
        entries.filter_map(|entry| entry.metadata().ok()).any(|meta| meta.len() > 1 << 20)
    };
    let until = Instant::now() + Duration::from_secs(30);
    while !has_come() {
        assert!(Instant::now() < until, "nothing comes");
        sleep(Duration::from_millis(10));
    }
    kill_process(Pid::from_child(&client), signal).unwrap();
    client.wait_with_output().unwrap()
}

#[test]
fn what_is_said_after_a_signal_is_true() {
    for signal in [Signal::INT, Signal::TERM] {
        for says in [Says::Version, Says::NoVersion, Says::NoParts] {
            let folder = scratch("get-signal");
            fs::create_dir_all(&folder).unwrap();
            let port = serve(says);
            let output = ended(&folder, port, signal);
            assert_eq!(output.status.signal(), Some(signal.as_raw()), "{output:?}");
            let said = String::from_utf8_lossy(&output.stderr);
            let is_kept = fs::read_dir(&folder).unwrap().count() > 0;
            assert_eq!(is_kept, says == Says::Version, "{says:?}");
            assert_eq!(
                said.contains("the same command continues from here"),
                is_kept,
                "{says:?}: {said}"
            );
            assert_eq!(said.contains("stopped; nothing was kept"), !is_kept, "{says:?}: {said}");
            let events = String::from_utf8_lossy(&output.stdout);
            let end = events.lines().last().unwrap();
            let end: serde_json::Value = serde_json::from_str(end).unwrap();
            assert_eq!(end["exit_code"], 128 + signal.as_raw(), "{end}");
            assert_eq!(kept_bytes(&folder, port) > 0, is_kept, "{says:?}: {said}");
            let _ = fs::remove_dir_all(state_of(&folder));
            let _ = fs::remove_dir_all(&folder);
        }
    }
}

#[test]
fn on_a_terminal_the_sentence_stands_on_a_line_of_its_own() {
    let folder = scratch("get-terminal");
    fs::create_dir_all(&folder).unwrap();
    let words = format!("get -n 1 -o f http://127.0.0.1:{}/f", serve(Says::Version));
    let ended = terminal::stopped(&words, (&folder, &folder), " MB of ");
    let Some(lines) = ended else { return };
    let sentence = "hikyaku: stopped; the same command continues from here";
    assert!(terminal::is_told(&lines, sentence), "{lines:#?}");
    fs::remove_dir_all(&folder).unwrap();
}
