//! One client and three daemons in a lab of two sites: all of them send at once, and one is killed on the way.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");

/// A lab and a scratch directory, both removed at the end of the test.
struct Lab {
    name: String,
    scratch: PathBuf,
}

impl Lab {
    fn up(name: &str, link: &[&str]) -> Self {
        let name = format!("{name}-{}", std::process::id());
        let scratch = crate::common::scratch(&name);
        let _ = fs::remove_dir_all(&scratch);
        fs::create_dir_all(&scratch).unwrap();
        let lab = Self { name, scratch };
        let words = ["lab", "up", &lab.name, "--site", "client:1", "--site", "storage:3"];
        let status = Command::new(PROGRAM).args(words).args(link).stdout(Stdio::null()).status();
        assert!(status.unwrap().success());
        lab
    }

    fn at(&self, name: &str) -> PathBuf {
        self.scratch.join(name)
    }

    /// The program on a host, with a state folder of its own.
    fn on(&self, host: &str, words: &[&str]) -> Command {
        let mut command = Command::new(PROGRAM);
        command.args(["lab", "exec", &self.name, host, "--", PROGRAM]).args(words);
        command.env("XDG_STATE_HOME", self.at(&format!("state-{host}")));
        command
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let _ = Command::new(PROGRAM).args(["lab", "down", &self.name]).status();
        let _ = fs::remove_dir_all(&self.scratch);
    }
}

/// A daemon that is killed at the end of the test, if not before.
struct Daemon(Child);

impl Daemon {
    fn start(lab: &Lab, host: &str, root: &Path, keys: &Path) -> Self {
        let (root, keys) = (root.to_str().unwrap(), keys.to_str().unwrap());
        let words = ["serve", "--root", root, "--authorized-keys", keys];
        let mut child = lab.on(host, &words).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.starts_with("serving "), "{line}");
        Self(child)
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn three_servers_send_at_once_and_one_that_is_killed_is_replaced() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("\n*** SKIPPED, because the lab needs root ***\n");
        return;
    }
    let lab = Lab::up("many", &["--rate", "100mbit", "--rtt", "60ms", "--loss", "0.5%"]);
    // Each file is on two of the three.
    let mut rng = fastrand::Rng::with_seed(1);
    let mut files = Vec::new();
    for n in 0..24 {
        let bytes: Vec<u8> = (0..[3_000_000, 20_000][n % 2]).map(|_| rng.u8(..)).collect();
        let name = format!("run7/{n}");
        for server in [n % 3, (n + 1) % 3] {
            let path = lab.at(&format!("root{server}")).join(&name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &bytes).unwrap();
            let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000);
            fs::File::open(&path).unwrap().set_modified(time).unwrap();
        }
        files.push((name, bytes));
    }
    let (keys, out) = (lab.at("keys"), lab.at("out"));
    fs::write(&keys, "").unwrap();
    let start = |n: usize| {
        Daemon::start(&lab, &format!("storage{}", n + 1), &lab.at(&format!("root{n}")), &keys)
    };
    let mut daemons: Vec<Daemon> = (0..3).map(start).collect();
    let source = "hikyaku://10.77.2.1,10.77.2.2,10.77.2.3/run7";
    let words = ["cp", "-r", "--json-lines", source, out.to_str().unwrap()];
    // The first attempt tells the key of the client.
    let refused = lab.on("client1", &words).output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    let key = said.split_whitespace().rfind(|word| word.starts_with("ed25519:")).unwrap();
    fs::write(&keys, format!("{key} client1\n")).unwrap();
    let mut copy = lab.on("client1", &words).stdout(Stdio::piped()).spawn().unwrap();
    let mut events = BufReader::new(copy.stdout.take().unwrap()).lines();
    let bytes = |line: &str| -> u64 {
        let event: serde_json::Value = serde_json::from_str(line).unwrap();
        event["bytes"].as_u64().unwrap_or(0)
    };
    let mut last = String::new();
    // A quarter of all has come when the second one dies.
    while let Some(Ok(line)) = events.next() {
        last = line;
        if bytes(&last) > 9_000_000 {
            break;
        }
    }
    daemons[1].kill();
    for line in events.map_while(Result::ok) {
        last = line;
    }
    assert!(copy.wait().unwrap().success(), "{last}");
    assert!(last.contains("\"files\":24,"), "{last}");
    for (name, bytes) in files {
        let name = name.strip_prefix("run7/").unwrap();
        assert!(fs::read(out.join(name)).unwrap() == bytes, "{name}");
    }
    let hidden = fs::read_dir(&out).unwrap().flatten();
    let hidden = hidden.filter(|entry| entry.file_name().to_string_lossy().starts_with('.'));
    assert_eq!(hidden.count(), 0, "unfinished files");
}
