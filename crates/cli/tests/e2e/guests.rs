//! Options of scp, rsync, curl, wget, aria2c, iperf3, globus-url-copy, sshfs and ssh are answered with the nearest of hikyaku.
//! The tables of `cp`, `sync`, `get` and `guc` are tested whole beside their other options (`matrix.rs`).

use std::process::{Command, Output};

/// The answer to an option.
enum Answer {
    /// It is refused, and this is the nearest.
    Try(&'static str),
    /// It has no effect, for this reason.
    Idle(&'static str),
}

use Answer::{Idle, Try};

/// A command with the option of another program, and what is answered.
const CASES: [(&str, Answer); 28] = [
    ("cp --bwlimit 1000 a b", Try("--rate 10MB")),
    ("cp --limit-rate 1m a b", Try("--rate 10MB")),
    ("cp --delete a b", Try("hikyaku sync -r --delete")),
    ("cp -e ssh a b", Try("-S PROGRAM, -P PORT or -o OPTION")),
    ("sync -aH a b", Try("leave it out")),
    ("sync --link-dest=x a b", Try("hikyaku sync to a copy of that directory")),
    ("get -x 16 http://127.0.0.1:1/f", Try("-n N, or --proxy URL")),
    ("get -k http://127.0.0.1:1/f", Try("--ca FILE")),
    ("get --split=16 http://127.0.0.1:1/f", Try("-n N")),
    ("get -P d http://127.0.0.1:1/f", Try("-d DIR")),
    ("get -b k=v http://127.0.0.1:1/f", Try("--cookies FILE, or -H 'Cookie: NAME=VALUE'")),
    ("get -C - http://127.0.0.1:1/f", Try("-c")),
    ("guc -rp ftp://127.0.0.1:1/f x", Try("ftp://HOST/~/PATH for a path below the home directory")),
    ("perf -c 127.0.0.1:1 -k 10", Try("-n BYTES")),
    ("perf -c 127.0.0.1:1 -C cubic", Try("--policy POLICY, or --compete tcp:1:NAME for TCP's")),
    ("perf -s --server-bitrate-limit 1g", Try("--max-rate RATE")),
    (
        "perf -c 127.0.0.1:1 -u -t 1",
        Idle("-u (--udp) has no effect: the transport is hikyaku's, over UDP"),
    ),
    (
        "perf -c 127.0.0.1:1 -w 4M -t 1",
        Idle("-w has no effect: windows grow by themselves, up to --window"),
    ),
    ("mount -r hikyaku://127.0.0.1:1/ nosuch", Try("-o ro")),
    ("mount -p 22 hikyaku://127.0.0.1:1/ nosuch", Try("hikyaku://HOST:PORT/PATH")),
    ("proxy -W host:22 -D 0 nosuch.invalid", Try("-L PORT:HOST:HOSTPORT")),
    ("proxy -X -D 0 nosuch.invalid", Try("ssh -X HOST")),
    ("proxy -l anna -D 0 nosuch.invalid", Try("USER@HOST")),
    ("cp --nosuch a b", Try("hikyaku help cp")),
    ("cp --excluded=x a b", Try("--exclude")),
    ("sftp --rat 1m h", Try("--rate")),
    ("lab run --los=1% -- true", Try("--loss")),
    ("doctor --jsn", Try("--json")),
];

#[test]
fn options_of_other_programs_are_answered_with_the_nearest() {
    let home = crate::common::scratch("guests");
    std::fs::create_dir_all(&home).unwrap();
    for (line, answer) in CASES {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        command.args(line.split(' ')).current_dir(&home).env("XDG_STATE_HOME", &home);
        let Output { status, stderr, stdout } = command.output().unwrap();
        let said = String::from_utf8_lossy(&stderr);
        match answer {
            Try(nearest) => {
                assert_eq!(status.code(), Some(1), "{line}: {said}");
                assert!(said.starts_with("hikyaku: no option -"), "{line}: {said}");
                assert!(said.ends_with(&format!("\ntry: {nearest}\n")), "{line}: {said}");
                assert!(stdout.is_empty() && said.lines().count() == 2, "{line}: {said}");
            }
            Idle(note) => assert!(said.contains(&format!("hikyaku: {note}\n")), "{line}: {said}"),
        }
    }
    std::fs::remove_dir_all(&home).unwrap();
}
