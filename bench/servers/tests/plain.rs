//! `hikyaku guc` with servers of plain FTP of other projects: vsftpd, which has no MLST, and pure-ftpd, which has. They are not
//! installed for the tests, because their packages start a server on port 21:
//!
//! ```text
//! apt-get download vsftpd pure-ftpd && for deb in *.deb; do dpkg -x $deb there; done
//! PATH=there/usr/sbin:$PATH cargo test -p hikyaku-bench-servers --test plain -- --ignored
//! ```
//!
//! Both need root.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use hikyaku_bench_servers::{Scene, is_same, said, write_file};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// The user of the files. vsftpd needs one with a home that exists.
const USER: &str = "daemon";

/// A server, and a folder for its client. Both end with it.
struct Stage {
    scene: Scene,
    server: Child,
    url: String,
}

impl Stage {
    /// `None` without the program.
    fn new(program: &str, command: impl FnOnce(&Scene, u16) -> Command) -> Option<Self> {
        if !xtask::on_path(program) {
            println!("SKIPPED, because {program} is not in PATH");
            return None;
        }
        let scene = Scene::new(program);
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        for (name, bytes) in
            [("a", 0), ("b c", 5), (".dot", 7), ("large", 20_000_003), ("sub/d", 1000)]
        {
            write_file(&scene.at("data/t").join(name), bytes);
        }
        let mut chown = Command::new("chown");
        assert!(chown.args(["-R", USER]).arg(scene.at("data")).status().unwrap().success());
        let mut command = command(&scene, free);
        let server = command.stdin(Stdio::null()).spawn().unwrap();
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", free)).is_err() {
            assert!(begin.elapsed() < PATIENCE, "{program} does not start");
            sleep(Duration::from_millis(50));
        }
        Some(Self { scene, server, url: format!("127.0.0.1:{free}") })
    }

    fn does(&self, words: &[&str]) {
        let output = self.scene.hikyaku().args(["guc", "-q"]).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", said(&output));
    }

    fn at(&self, path: &str) -> PathBuf {
        self.scene.at(path)
    }

    /// Copies a tree and files from the server and back. `url` is that of the directory `data`.
    fn copies(&self, url: &str) {
        self.does(&["-r", "-cd", &format!("{url}/t/"), "got/"]);
        self.does(&["-r", "-cd", "got/", &format!("{url}/up/deep/")]);
        for tree in [self.at("got"), self.at("data/up/deep")] {
            let status = Command::new("diff").arg("-r").args([self.at("data/t"), tree]).status();
            assert!(status.unwrap().success());
        }
        self.does(&[&format!("{url}/t/large"), "large"]);
        self.does(&["large", &format!("{url}/up/large")]);
        // It takes the place of a file.
        self.does(&["got/b c", &format!("{url}/up/large")]);
        assert!(is_same(&self.at("data/t/large"), &self.at("large")));
        assert!(is_same(&self.at("data/t/b c"), &self.at("data/up/large")));
        let missing = format!("{url}/t/none");
        let output = self.scene.hikyaku().args(["guc", &missing, "none"]).output().unwrap();
        assert_eq!(output.status.code(), Some(6), "{}", said(&output));
        let mut names: Vec<_> = fs::read_dir(self.at("data/up")).unwrap().flatten().collect();
        names.sort_by_key(fs::DirEntry::file_name);
        let names: Vec<_> = names.iter().map(fs::DirEntry::file_name).collect();
        assert_eq!(names, ["deep", "large"], "no temporary file is left");
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
#[ignore = "needs vsftpd and root"]
fn vsftpd_sends_and_takes_files() {
    let stage = Stage::new("vsftpd", |scene, port| {
        let (root, empty, file) = (scene.at(""), scene.at("empty"), scene.at("conf"));
        fs::create_dir(&empty).unwrap();
        let text = format!(
            "listen=YES\nlisten_port={port}\nlisten_address=127.0.0.1\nbackground=NO\n\
             anonymous_enable=YES\nno_anon_password=YES\nanon_root={root}\nanon_umask=022\n\
             write_enable=YES\nanon_upload_enable=YES\nanon_mkdir_write_enable=YES\n\
             anon_other_write_enable=YES\nanon_world_readable_only=NO\nftp_username={USER}\n\
             nopriv_user=nobody\nsecure_chroot_dir={empty}\nseccomp_sandbox=NO\n",
            root = root.display(),
            empty = empty.display(),
        );
        fs::write(&file, text).unwrap();
        let mut command = Command::new("vsftpd");
        command.arg(file);
        command
    });
    let Some(stage) = stage else { return };
    stage.copies(&format!("ftp://{}/data", stage.url));
}

#[test]
#[ignore = "needs pure-ftpd and root"]
fn pure_ftpd_sends_and_takes_files() {
    let stage = Stage::new("pure-ftpd", |scene, port| {
        // A user whom only this server knows: its process sees another list of users.
        let user = format!("tester:x:1:1::{}:/bin/sh\n", scene.at("data").display());
        let crypted = Command::new("openssl").args(["passwd", "-6", "secret"]).output().unwrap();
        let crypted = String::from_utf8(crypted.stdout).unwrap();
        let shadow = format!("tester:{}:19000:0:99999:7:::\n", crypted.trim());
        for (list, line) in [("passwd", user), ("shadow", shadow)] {
            let old = fs::read_to_string(format!("/etc/{list}")).unwrap();
            fs::write(scene.at(list), old + &line).unwrap();
        }
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c"]);
        command.arg(
            "mount --bind passwd /etc/passwd && mount --bind shadow /etc/shadow && \
             exec pure-ftpd -S \"127.0.0.1,$0\" -E -H -l unix -u 1 -U 022:022",
        );
        command.arg(port.to_string()).current_dir(scene.at(""));
        command
    });
    let Some(stage) = stage else { return };
    let login = format!("ftp://tester:secret@{}", stage.url);
    stage.copies(&format!("{login}{}", stage.at("data").display()));
    // The home directory of the user.
    stage.does(&[&format!("{login}/~/t/large"), "home"]);
    assert!(is_same(&stage.at("data/t/large"), &stage.at("home")));
}
