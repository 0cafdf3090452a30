//! Apache of Debian, on a free port of this host.

use crate::{Folder, check, got, payload};
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

const PROGRAM: &str = "/usr/sbin/apache2";
const MODULES: &str = "/usr/lib/apache2/modules";

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Folder) -> Option<(Running, u16)> {
    if !Path::new(PROGRAM).exists() {
        eprintln!("SKIPPED: {PROGRAM} is not installed (package apache2)");
        return None;
    }
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let dir = folder.0.display();
    let config = format!(
        "ServerRoot {dir}\nServerName localhost\nPidFile {dir}/pid\nListen 127.0.0.1:{port}\nErrorLog {dir}/log\n\
         LoadModule mpm_event_module {MODULES}/mod_mpm_event.so\n\
         LoadModule authz_core_module {MODULES}/mod_authz_core.so\n\
         DocumentRoot {dir}/www\n<Directory {dir}/www>\nRequire all granted\n</Directory>\n"
    );
    fs::write(folder.path("conf"), config).unwrap();
    let mut command = Command::new(PROGRAM);
    command.arg("-f").arg(folder.path("conf")).args(["-X", "-k", "start"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut running = Running(command.spawn().unwrap());
    for _ in 0..500 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some((running, port));
        }
        if let Ok(Some(status)) = running.0.try_wait() {
            let log = fs::read_to_string(folder.path("log")).unwrap_or_default();
            panic!("apache2 ended with {status}: {log}");
        }
        thread::sleep(Duration::from_millis(20));
    }
    panic!("apache2 does not accept connections");
}

#[test]
fn apache_gives_files_of_all_sizes() {
    let site = Folder::new();
    fs::create_dir(site.path("www")).unwrap();
    let sizes = [0, 1, 5_000_000, 30_000_001];
    for size in sizes {
        fs::write(site.path("www").join(format!("f{size}")), payload(size as u64, size)).unwrap();
    }
    let Some((_running, port)) = start(&site) else { return };
    for size in sizes {
        for words in ["-n 6", ""] {
            let folder = Folder::new();
            got(&folder, &format!("{words} -d DIR http://127.0.0.1:{port}/f{size}"));
            check(&folder, &format!("f{size}"), &payload(size as u64, size));
        }
    }
}
