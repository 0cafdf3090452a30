//! The example of a session in C, compiled as a user would, with daemons of this process.

use hikyaku_net::blocking::Stop;
use hikyaku_net::{Fingerprint, Identity};
use hikyaku_remote::{Limits, Writes};
use hikyaku_run_log::SharedProbe;
use hikyaku_serve::{Carries, Daemon, Grant, Settings};
use hikyaku_store::Memory;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// The files of an installed library below `dir`, and the flags that pkg-config tells of them.
fn installed(dir: &Path) -> Option<Vec<String>> {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The library lies beside this test program.
    let own = std::env::current_exe().unwrap();
    let library = own.parent().unwrap().join("libhikyaku_c.so");
    assert!(library.exists(), "no {}", library.display());
    fs::create_dir_all(dir.join("lib/pkgconfig")).unwrap();
    symlink(library, dir.join("lib/libhikyaku_c.so")).unwrap();
    symlink(home.join("include"), dir.join("include")).unwrap();
    let description = fs::read_to_string(home.join("hikyaku.pc")).unwrap();
    assert!(description.contains(&format!("\nVersion: {}\n", env!("CARGO_PKG_VERSION"))));
    fs::write(dir.join("lib/pkgconfig/hikyaku.pc"), description).unwrap();
    let asked = Command::new("pkg-config")
        .env("PKG_CONFIG_PATH", dir.join("lib/pkgconfig"))
        .args(["--cflags", "--libs", "hikyaku"])
        .output();
    let asked = asked.ok()?;
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let flags = String::from_utf8(asked.stdout).unwrap();
    Some(flags.split_whitespace().map(str::to_owned).collect())
}

fn compiled(dir: &Path) -> PathBuf {
    let flags = installed(dir).unwrap_or_else(|| {
        eprintln!("\n*** SKIPPED: hikyaku.pc is not tried, because there is no pkg-config ***\n");
        let lib = format!("-L{}", dir.join("lib").display());
        vec![format!("-I{}", dir.join("include").display()), lib, "-lhikyaku_c".to_owned()]
    });
    let program = dir.join("session");
    let status = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/session.c"))
        .args(flags)
        .arg(format!("-Wl,-rpath,{}", dir.join("lib").display()))
        .status()
        .unwrap();
    assert!(status.success());
    program
}

/// A daemon that runs as long as the test, and how often it was connected.
fn daemon() -> (String, Arc<AtomicUsize>) {
    let connections = Arc::new(AtomicUsize::new(0));
    let (counted, store) = (connections.clone(), Arc::new(Memory::default()));
    let daemon = Daemon::bind(Settings {
        listen: "127.0.0.1:0".parse().unwrap(),
        identity: Identity::generate().unwrap(),
        admission: Box::new(move |_: &Fingerprint| {
            counted.fetch_add(1, Ordering::Relaxed);
            let limits = Limits { writes: Writes::Allowed, ..Limits::default() };
            Some(Grant { store: Some(store.clone()), flows: None, limits, rate: None })
        }),
        render: None,
        leases: None,
        probe: Arc::new(SharedProbe::new(None)),
        recorder: None,
        sessions: 9,
        forward: |_, _| Ok(()),
        unread: hikyaku_units::DataSize::from_bytes(1 << 30),
        carries: Carries::Files,
        drain: Duration::ZERO,
    });
    let daemon = daemon.unwrap();
    let address = daemon.local_addr().to_string();
    thread::spawn(move || daemon.run(&Stop::default()).unwrap());
    (address, connections)
}

#[test]
fn the_example_in_c_uses_one_connection_for_many_calls() {
    let dir = std::env::temp_dir().join(format!("hikyaku-capi-session-{}", std::process::id()));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    let program = compiled(&dir);
    let daemons = [daemon(), daemon()];
    let (file, copy) = (dir.join("file"), dir.join("copy"));
    let bytes: Vec<u8> = (0..3_000_000u32).map(|at| (at / 7) as u8).collect();
    fs::write(&file, &bytes).unwrap();
    let run = |hosts: &[&str]| {
        let mut command = Command::new(&program);
        command.env("XDG_STATE_HOME", dir.join("state")).args([&file, &copy]).args(hosts);
        command.output().unwrap()
    };
    let ran = run(&[&daemons[0].0, &daemons[1].0]);
    let said = String::from_utf8(ran.stdout).unwrap();
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    let up =
        daemons.iter().map(|(address, _)| format!("{address}: up, connections: 1, free: some\n"));
    let up: String = up.collect();
    let wanted = format!(
        "sent 1 files, 3000000 bytes, seen 3000000\n{up}nothing is an error: not found\n\
         fetched 1 files, 3000000 bytes, seen 3000000\n{up}"
    );
    assert_eq!(said, wanted);
    assert!(fs::read(&copy).unwrap() == bytes);
    assert!(daemons.iter().all(|(_, connections)| connections.load(Ordering::Relaxed) <= 2));
    let unknown = run(&["no-such-host.invalid"]);
    let words = String::from_utf8(unknown.stderr).unwrap();
    assert!(words.contains("start: -2: ") && words.contains("(try: "), "{words}");
    fs::remove_dir_all(dir).unwrap();
}
