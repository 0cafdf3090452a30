//! The example in C, compiled and linked with the library.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

/// Compiles `examples/echo.c` into the scratch directory of this test.
fn compiled(dir: &Path) -> PathBuf {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The library lies beside this test program.
    let own = std::env::current_exe().unwrap();
    let built = own.parent().unwrap();
    assert!(built.join("libhikyaku_c.so").exists(), "no library in {}", built.display());
    let program = dir.join("echo");
    let status = Command::new("cc")
        .args(["-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(home.join("examples/echo.c"))
        .arg("-I")
        .arg(home.join("include"))
        .arg("-L")
        .arg(built)
        .args(["-lhikyaku_c", "-lpthread"])
        .arg(format!("-Wl,-rpath,{}", built.display()))
        .status()
        .unwrap();
    assert!(status.success());
    program
}

#[test]
fn the_example_in_c_gets_back_what_it_sends() {
    let dir = std::env::temp_dir().join(format!("hikyaku-capi-{}", std::process::id()));
    fs::create_dir_all(&dir).unwrap();
    let program = compiled(&dir);
    let start = |words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let key = dir.join("key");
    let mut server = start(&["server", "127.0.0.1:0", key.to_str().unwrap()]);
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let [port, fingerprint] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        panic!("{line:?}")
    };

    // Another key than the server's.
    let other = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU";
    let refused = start(&["client", "127.0.0.1", port, other]).wait_with_output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && said.contains("not the pinned key"), "{said}");

    let bytes: Vec<u8> = (0..5_000_000u32).map(|at| (at / 7) as u8).collect();
    let mut client = start(&["client", "127.0.0.1", port, fingerprint]);
    let (mut input, sent) = (client.stdin.take().unwrap(), bytes.clone());
    let writes = thread::spawn(move || input.write_all(&sent));
    let mut back = Vec::new();
    client.stdout.take().unwrap().read_to_end(&mut back).unwrap();
    writes.join().unwrap().unwrap();
    assert!(client.wait().unwrap().success());
    assert!(back == [b"hello\n", &bytes[..]].concat());
    assert!(server.wait().unwrap().success());
    fs::remove_dir_all(dir).unwrap();
}
