//! The Python package: its wheel is built and installed into a virtual environment, and programs in Python copy files from
//! and to daemons. It takes minutes and the network, so it runs by
//! `cargo test -p hikyaku-cli --test e2e -- --ignored python`.

use crate::common::daemon::{Client, Daemon};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A virtual environment with the package; `None` where there is no Python, no pip or no maturin.
fn environment(client: &Client) -> Option<PathBuf> {
    let home = client.at("venv");
    let ran = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    if !ran(Command::new("python3").args(["-m", "venv"]).arg(&home)) {
        return None;
    }
    let python = home.join("bin/python");
    let packages = ["maturin>=1.9.4,<2", "fsspec", "tqdm"];
    if !ran(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(packages)) {
        return None;
    }
    let wheels = client.at("wheels");
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("python");
    // The profile of this test, whose parts are built already.
    let built = Command::new(home.join("bin/maturin"))
        .args(["build", "--profile", "dev", "--out"])
        .arg(&wheels)
        .args(["--interpreter"])
        .arg(&python)
        .current_dir(package)
        .output()
        .unwrap();
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let wheel = fs::read_dir(&wheels).unwrap().next().unwrap().unwrap().path();
    let name = wheel.file_name().unwrap().to_string_lossy().into_owned();
    assert!(name.contains("cp39-abi3"), "{name}");
    assert!(ran(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).arg(&wheel)));
    Some(python)
}

/// The program in the page about the package.
fn example() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/python.md");
    let page = fs::read_to_string(page).unwrap();
    page.split("```python\n").nth(1).unwrap().split("```").next().unwrap().to_owned()
}

fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&text).into_owned()
}

#[test]
#[ignore = "it builds a wheel and installs packages"]
fn a_program_in_python_copies_from_and_to_daemons() {
    let client = Client::new("python");
    let Some(python) = environment(&client) else {
        eprintln!(
            "\n*** SKIPPED, because there is no python3 with venv and pip, or no network ***\n"
        );
        return;
    };
    let keys = client.authorized("keys", "");
    let daemons: Vec<Daemon> = (0..2)
        .map(|n| {
            let root = client.at(&format!("root{n}"));
            fs::create_dir_all(root.join("run7")).unwrap();
            let (name, size) = [("large", 3_000_000), ("small", 100)][n];
            let bytes: Vec<u8> = (0..size).map(|at| (at / 7) as u8).collect();
            fs::write(root.join("run7").join(name), bytes).unwrap();
            Daemon::start_with(&client, &root, &keys, &["--writable"])
        })
        .collect();
    let hosts = format!("hikyaku://{},{}", daemons[0].address, daemons[1].address);
    let run = |program: &Path, words: &[&str]| {
        let mut command = Command::new(&python);
        command.env("XDG_STATE_HOME", client.at("state")).arg(program).args(words);
        command.output().unwrap()
    };
    let package = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("python");
    let scratch = client.at("scratch");
    fs::create_dir(&scratch).unwrap();
    let tested = run(&package.join("tests/test_package.py"), &[&hosts, scratch.to_str().unwrap()]);
    assert!(tested.status.success(), "{}", said(&tested));
    assert!(said(&tested).contains("all is right"), "{}", said(&tested));

    let (program, out) = (client.at("example.py"), client.at("out"));
    fs::write(&program, example()).unwrap();
    let shown = run(&program, &[&hosts, out.to_str().unwrap()]);
    assert!(shown.status.success(), "{}", said(&shown));
    let text = said(&shown);
    assert!(text.contains("no such file") && text.contains("] True\nTrue\n"), "{text}");
    assert_eq!(fs::read(out.join("large")).unwrap().len(), 3_000_000);
}
