//! Files that are written to standard output, by a process of its own.

use crate::server::{Body, Reply, Request, Server};
use crate::{Folder, Line, get, payload, sha256};
use clap::Parser;
use hikyaku_console::{ExitCode, Interrupt};
use hikyaku_web_get::{exit_code, run};
use std::process::{Command, Output};

const MIB: usize = 1 << 20;

/// The environment variable with the command line of [`a_piped_download_in_a_process_of_its_own`].
const LINE: &str = "HIKYAKU_GET_PIPED_LINE";
/// What stands before the file on the standard output of that process, which the harness writes to as well.
const MARK: &[u8] = b"hikyaku-get-begins\n";

/// What the other tests start. Without its variable it does nothing.
#[test]
fn a_piped_download_in_a_process_of_its_own() {
    use std::io::Write;
    let Ok(line) = std::env::var(LINE) else { return };
    let line = Line::try_parse_from(line.split_whitespace()).unwrap();
    std::io::stdout().write_all(MARK).unwrap();
    let code = match run(&line.args, &Interrupt::default()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::of(&error, &[exit_code])
        }
    };
    hikyaku_console::leave(code);
}

/// Runs the command. Returns its end and what it wrote to standard output.
fn piped(folder: &Folder, words: &str) -> (Output, Vec<u8>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--nocapture", "piped::a_piped_download_in_a_process_of_its_own"]);
    command.env(LINE, format!("get -q --retry-wait 10ms {words}")).current_dir(&folder.0);
    let output = command.output().unwrap();
    let begin = output.stdout.windows(MARK.len()).position(|bytes| bytes == MARK);
    let content = output.stdout[begin.unwrap() + MARK.len()..].to_vec();
    assert_eq!(folder.names(), [""; 0], "no file is made");
    (output, content)
}

fn untagged(request: &Request, content: &[u8]) -> Reply {
    let mut reply = Reply::honest(request, content, "");
    reply.headers.retain(|(name, _)| name != "ETag");
    reply
}

#[test]
fn a_file_goes_to_standard_output_in_order() {
    let content = payload(1, 12 * MIB + 5);
    type Answer = fn(&Request, &[u8]) -> Reply;
    let answers: [(&str, Answer); 6] = [
        ("ranges", |request, data| Reply::honest(request, data, "\"a\"")),
        ("no ranges with If-Range", |request, data| match request.header("if-range") {
            Some(_) => Reply::whole(data).with("ETag", "\"a\""),
            None => Reply::honest(request, data, "\"a\""),
        }),
        ("no version", untagged),
        ("no ranges", |_, data| Reply::whole(data)),
        ("no length", |_, data| {
            Reply::status(200)
                .with("Transfer-Encoding", "chunked")
                .body(|_| Body::Chunked(data.to_vec()))
        }),
        ("breaks", |request, data| {
            let reply = Reply::honest(request, data, "\"a\"");
            if request.number == 1 { reply.body(|bytes| Body::Cut(bytes, MIB)) } else { reply }
        }),
    ];
    for (what, answer) in answers {
        for name in ["-", "/dev/stdout", "/dev/fd/1"] {
            let (folder, data) = (Folder::new(), content.clone());
            let server = Server::start(move |request| {
                let mut reply = answer(request, &data);
                if what == "no length" {
                    reply.headers.retain(|(name, _)| name != "Transfer-Encoding");
                    reply.body = Body::Chunked(data.clone());
                }
                reply
            });
            let (output, got) = piped(&folder, &format!("-o {name} {}", server.url("/a")));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{what} to {name}: {said}");
            assert!(got == content, "{what} to {name}: {} bytes", got.len());
        }
    }
}

#[test]
fn a_fifo_is_written_into_and_stays_one() {
    let (folder, content) = (Folder::new(), payload(4, 3 * MIB));
    let path = folder.path("fifo");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, mode).unwrap();
    let data = content.clone();
    let server = Server::start(move |request| Reply::honest(request, &data, "\"a\""));
    let reading = path.clone();
    let reader = std::thread::spawn(move || std::fs::read(reading).unwrap());
    assert_eq!(
        get(&folder, &format!("--force -o DIR/fifo {}", server.url("/a"))).0,
        ExitCode::Success
    );
    assert!(reader.join().unwrap() == content);
    assert!(!path.symlink_metadata().unwrap().is_file());
    assert_eq!(folder.names(), ["fifo"]);
}

#[test]
fn what_cannot_be_gone_on_with_is_an_error() {
    let (folder, data) = (Folder::new(), payload(2, 12 * MIB));
    let server = Server::start(move |request| {
        untagged(request, &data).body(|bytes| Body::Cut(bytes, 5 * MIB))
    });
    let (output, got) = piped(&folder, &format!("-o - {}", server.url("/a")));
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains(&format!("{} bytes", got.len())) && said.contains("-o FILE"), "{said}");
}

#[test]
fn a_wrong_digest_is_told_behind_the_file() {
    let (folder, content) = (Folder::new(), payload(3, MIB));
    for (digest, code) in [(sha256(&content), 0), (sha256(b"other"), 2)] {
        let data = content.clone();
        let server = Server::start(move |request| Reply::honest(request, &data, "\"a\""));
        let line = format!("--sha256 {digest} -o - {}", server.url("/a"));
        let (output, _) = piped(&folder, &line);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
    }
}

#[test]
fn options_without_a_meaning_for_a_pipe_are_refused() {
    let folder = Folder::new();
    for words in ["--json -o - http://127.0.0.1:1/", "-n 4 -o /dev/stdout http://127.0.0.1:1/"] {
        let line = Line::try_parse_from(format!("get {words}").split_whitespace()).unwrap();
        let error = run(&line.args, &Interrupt::default()).unwrap_err();
        assert_eq!(ExitCode::of(&error, &[]), ExitCode::Usage, "{words}: {error:#}");
        assert!(format!("{error:#}").contains("try: "), "{words}: {error:#}");
    }
    assert_eq!(get(&folder, "-n 1 -o - http://127.0.0.1:1/").0, ExitCode::MayPass);
    assert_eq!(folder.names(), [""; 0]);
}
