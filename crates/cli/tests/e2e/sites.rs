//! Labs of sites in use: ssh between all hosts, and complete removal after an interrupt.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
const CONDITION_TIMEOUT: Duration = Duration::from_secs(30);

fn lab(words: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.arg("lab").args(words).stdin(Stdio::null());
    command
}

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("\n*** SKIPPED, because the lab needs root ***\n");
    }
    is_root
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < CONDITION_TIMEOUT, "{what} did not become true in time");
        sleep(Duration::from_millis(5));
    }
}

/// Everything that exists of the labs whose names begin with `lab`.
fn traces(lab: &str) -> Vec<PathBuf> {
    let begins = |folder: &str, prefix: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path());
        let name = format!("{prefix}{lab}");
        let is_ours = move |path: &PathBuf| {
            path.file_name().is_some_and(|file| file.to_string_lossy().starts_with(&name))
        };
        paths.filter(is_ours).collect::<Vec<_>>()
    };
    let mut all = begins("/run/netns", "hikyaku-");
    all.extend(begins("/etc/netns", "hikyaku-"));
    all.extend(begins("/run/hikyaku-lab", ""));
    all
}

/// A lab of sites that runs `sleep`. Returns the prefix of its name.
fn sleeping() -> (Child, String) {
    let words =
        ["run", "--site", "tokyo:2", "--site", "nict:2", "--site", "osaka:1", "--rtt", "20ms"];
    let mut command = lab(&words);
    let child = command.args(["--", "sleep", "600"]).stderr(Stdio::null()).spawn().unwrap();
    let name = format!("run-{}-", child.id());
    (child, name)
}

fn interrupt(child: &Child) {
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
}

#[test]
fn ctrl_c_removes_a_lab_of_sites_completely() {
    if !is_root() {
        return;
    }
    let namespaces = |name: &str| {
        let is_namespace = |path: &PathBuf| path.starts_with("/run/netns");
        traces(name).into_iter().filter(is_namespace).count()
    };
    // While the command runs, and at several moments while five hosts and three gateways are
    // created.
    for count in [8, 1, 4, 6] {
        let (mut child, name) = sleeping();
        wait_until("the lab", || namespaces(&name) >= count);
        if count == 8 {
            let first = format!("hikyaku-{name}0-tokyo1");
            wait_until("the command", || {
                let said = Command::new("ip").args(["netns", "pids", &first]).output().unwrap();
                !said.stdout.is_empty()
            });
        }
        interrupt(&child);
        let status = child.wait().unwrap();
        assert_eq!(status.signal(), Some(2), "{count}: {status}");
        assert_eq!(traces(&name), Vec::<PathBuf>::new(), "{count}");
    }
}

/// A lab that is removed at the end of the test.
struct Lab(&'static str);

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = lab(&["down", self.0]).status();
    }
}

/// Creates keys and configurations for ssh servers and clients in `scratch`.
fn configure(scratch: &Path) {
    let at = |name: &str| scratch.join(name).display().to_string();
    for key in ["host", "user"] {
        let words = ["-q", "-t", "ed25519", "-N", "", "-f", &at(key)];
        assert!(Command::new("ssh-keygen").args(words).status().unwrap().success());
    }
    let server = format!(
        "Port 22\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\nStrictModes no\n\
         PasswordAuthentication no\nUsePAM no\nUseDNS no\n",
        at("host"),
        at("user.pub"),
    );
    fs::write(scratch.join("sshd_config"), server).unwrap();
    let client = format!(
        "Host *\n IdentityFile {}\n IdentitiesOnly yes\n UserKnownHostsFile {}\n \
         StrictHostKeyChecking accept-new\n LogLevel ERROR\n BatchMode yes\n",
        at("user"),
        at("known_hosts"),
    );
    fs::write(scratch.join("ssh_config"), client).unwrap();
    // sshd needs this directory when it is run by root.
    let _ = fs::create_dir_all("/run/sshd");
}

#[test]
fn ssh_works_between_all_hosts_by_name() {
    if !is_root() {
        return;
    }
    let scratch = crate::common::scratch("sites");
    fs::create_dir_all(&scratch).unwrap();
    configure(&scratch);
    let config = |name: &str| scratch.join(name).display().to_string();
    let made = Lab("test-ssh");
    let up = [
        "up", made.0, "--rtt", "10ms", "--site", "tokyo:2", "--site", "nict:1", "--site", "osaka:1",
    ];
    assert!(lab(&up).args(["--link", "nict-osaka=20ms,loss:1%"]).status().unwrap().success());
    let hosts = ["tokyo1", "tokyo2", "nict1", "osaka1"];
    let addresses = ["10.77.1.1", "10.77.1.2", "10.77.2.1", "10.77.3.1"];
    let mut servers: Vec<(Child, PathBuf)> = Vec::new();
    for host in hosts {
        let log = scratch.join(format!("{host}.log"));
        let mut server = lab(&["exec", made.0, host, "--", "/usr/sbin/sshd", "-D", "-e", "-f"]);
        server.arg(config("sshd_config")).stderr(File::create(&log).unwrap());
        servers.push((server.spawn().expect("openssh-server is installed"), log));
    }
    let listens = |log: &PathBuf| fs::read_to_string(log).unwrap().contains("listening on 0.0.0.0");
    wait_until("all servers", || servers.iter().all(|(_, log)| listens(log)));
    for from in hosts {
        for (to, address) in hosts.into_iter().zip(addresses) {
            let mut ssh =
                lab(&["exec", made.0, from, "--", "ssh", "-F", &config("ssh_config"), to]);
            let output = ssh.args(["ip", "-4", "-br", "addr"]).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            let complains = String::from_utf8_lossy(&output.stderr);
            assert!(said.contains(&format!("{address}/24")), "{from} {to}: {said}{complains}");
        }
    }
    drop(made);
    for (mut server, _) in servers {
        // Ends only when the lab ends it, with sshd's exit code for SIGTERM.
        server.wait().unwrap();
    }
    assert_eq!(traces("test-ssh"), Vec::<PathBuf>::new());
    fs::remove_dir_all(scratch).unwrap();
}
