//! Standard input, FIFOs and open descriptors as sources of copies into storages, which learn the size at the end.

use crate::common::daemon::{Client, Daemon};
use crate::common::{Sshd, partials, random, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use xtask::servers::ftp::{PlainFtp, Style};

/// A line of the settings of a server that has SFTP.
const SFTP: &str = "Subsystem sftp internal-sftp\n";

fn spawn(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// Runs the command with this standard input.
fn piped(command: Command, input: Vec<u8>) -> Output {
    let mut child = spawn(command);
    let mut stdin = child.stdin.take().unwrap();
    // The program may have ended before it has read all its input.
    let writer = thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A client with a daemon and a server of FTP that serve one directory each.
struct Rig {
    client: Client,
    daemon: Daemon,
    ftp: PlainFtp,
}

impl Rig {
    fn up(name: &str) -> Self {
        let client = Client::new(name);
        let keys = client.authorized("keys", "");
        for root in ["daemon", "ftp"] {
            fs::create_dir(client.at(root)).unwrap();
        }
        let daemon = Daemon::start_with(&client, &client.at("daemon"), &keys, &["--writable"]);
        let ftp = PlainFtp::start(&client.at("ftp"), Style::Facts).unwrap();
        Self { client, daemon, ftp }
    }

    /// An address in each storage, and the directory that it serves.
    fn targets(&self, name: &str) -> [(String, &'static str); 2] {
        [
            (format!("hikyaku://{}/{name}", self.daemon.address), "daemon"),
            (format!("{}/{name}", self.ftp.url()), "ftp"),
        ]
    }

    fn cp(&self, arguments: &[&str]) -> Command {
        let mut command = self.client.command(&[&["cp"], arguments].concat());
        command.current_dir(self.client.at(""));
        command
    }

    fn piped(&self, arguments: &[&str], input: &[u8], code: i32) -> String {
        let output = piped(self.cp(arguments), input.to_vec());
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", said(&output));
        said(&output)
    }

    fn read(&self, root: &str, name: &str) -> Vec<u8> {
        fs::read(self.client.at(root).join(name)).unwrap()
    }
}

#[test]
fn standard_input_goes_into_any_storage() {
    let rig = Rig::up("piped");
    for (length, name) in [(0, "a"), (5, "b"), (100_000, "c"), (3_000_017, "d"), (4, "d")] {
        let bytes = random(length as u64, length);
        for (target, root) in rig.targets(name) {
            rig.piped(&["-", &target], &bytes, 0);
            assert!(rig.read(root, name) == bytes, "{root} {length}");
        }
    }
    // In a directory its name is that of its path.
    for (target, root) in rig.targets("") {
        rig.piped(&["-", &target], b"by its name", 0);
        assert_eq!(rig.read(root, "stdin"), b"by its name");
        // Beside another source.
        fs::write(rig.client.at("file"), "beside").unwrap();
        rig.piped(&["-", "file", &target], b"again", 0);
        assert_eq!(
            (rig.read(root, "stdin"), rig.read(root, "file")),
            (b"again".into(), b"beside".into())
        );
    }
    for (target, root) in rig.targets("d") {
        let told = rig.piped(&["-n", "-", &target], b"other", 0);
        assert_eq!(told, "", "{root}");
        rig.piped(&["--ignore-existing", "-", &target], b"other", 0);
        assert_eq!(rig.read(root, "d").len(), 4, "{root}");
    }
    // A target that is not possible is an error, as with a file.
    for (target, _) in rig.targets("gone/x") {
        assert!(rig.piped(&["-", &target], b"x", 6).contains("there is no directory 'gone'"));
    }
    let several = format!("hikyaku://{},{}/x", rig.daemon.address, rig.daemon.address);
    assert!(rig.piped(&["-", &several], b"x", 1).contains("one of the daemons"));
}

#[test]
fn a_fifo_and_a_descriptor_are_read_to_their_end() {
    let rig = Rig::up("piped-fifo");
    let fifo = rig.client.at("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let bytes = random(3, 2_000_000);
    for (target, root) in rig.targets("made") {
        let fill = thread::spawn({
            let (fifo, bytes) = (fifo.clone(), bytes.clone());
            move || fs::write(fifo, bytes).unwrap()
        });
        rig.piped(&["fifo", &target], b"", 0);
        fill.join().unwrap();
        assert!(rig.read(root, "made") == bytes, "{root}");
        // A file that a shell has opened is read from where it stands.
        fs::write(rig.client.at("list"), "first\nthe rest\n").unwrap();
        let script = format!(
            "exec 7< list; read -r line <&7; exec {} cp /dev/fd/7 '{target}'",
            env!("CARGO_BIN_EXE_hikyaku")
        );
        let mut command = Command::new("sh");
        command.env("XDG_STATE_HOME", rig.client.at("state")).current_dir(rig.client.at(""));
        command.args(["-c", &script]);
        let output = piped(command, Vec::new());
        assert!(output.status.success(), "{}", said(&output));
        assert!(rig.read(root, "made").ends_with(b"the rest\n"), "{root}");
    }
}

#[test]
fn the_hash_of_what_came_is_that_of_the_file() {
    let rig = Rig::up("piped-hash");
    let bytes = random(9, 2_500_000);
    let (target, _) = rig.targets("x")[1].clone();
    rig.piped(&["--verify", "--manifest", "list", "-", &target], &bytes, 0);
    let list = fs::read_to_string(rig.client.at("list")).unwrap();
    assert_eq!(list, format!("{}  x\n", blake3::hash(&bytes).to_hex()));
}

#[test]
fn a_stopped_copy_of_standard_input_leaves_no_file() {
    let rig = Rig::up("piped-stopped");
    let sshd = Sshd::with_lines("piped-stopped-host", SFTP);
    let mut all: Vec<(Command, std::path::PathBuf)> = rig
        .targets("x")
        .into_iter()
        .map(|(target, root)| (rig.cp(&["-", &target]), rig.client.at(root)))
        .collect();
    all.push((sshd.cp(&["--via", "sftp", "-", &sshd.far("x")]), sshd.at("")));
    for (command, root) in all {
        let mut child = spawn(command);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(&random(3, 9_000_000)).unwrap();
        wait_until("its unfinished file", || !partials(&root).is_empty());
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        // Ctrl-C ends the writer as well.
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(2), "{}", said(&output));
        let text = "stopped; the bytes that went through the pipe cannot be copied again";
        assert!(said(&output).contains(text), "{}", said(&output));
        let gone = format!("the end of its file in {}", root.display());
        wait_until(&gone, || partials(&root).is_empty());
        assert!(!root.join("x").exists(), "{}", root.display());
    }
}

#[test]
fn standard_input_goes_to_a_host_by_sftp() {
    let sshd = Sshd::with_lines("piped-sftp", SFTP);
    for length in [0, 5, 3_000_000] {
        let bytes = random(length as u64, length);
        let output = piped(sshd.cp(&["--via", "sftp", "-", &sshd.far("x")]), bytes.clone());
        assert!(output.status.success(), "{}", said(&output));
        assert!(fs::read(sshd.at("x")).unwrap() == bytes, "{length}");
    }
}
