//! Packages: what `cargo xtask dist` makes of the program is installed into an empty root, and works there.

use crate::common::{Sshd, listing, random};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use xtask::dist::{Packages, Product, Target, Texts, checksums, commit_time, pack};

/// A scratch directory.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = crate::common::scratch(name);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Standard output of a program that must succeed.
fn said(command: &mut Command) -> String {
    let output = run(command);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// The product around the program under test, for this machine.
fn product(scratch: &Scratch) -> Product {
    let program = scratch.at("stripped");
    said(Command::new("strip").arg(env!("CARGO_BIN_EXE_hikyaku")).arg("-o").arg(&program));
    let texts = Texts::of(&program).unwrap().expect("the program runs");
    Product::new(&program, Target::of_this_machine().unwrap(), texts, commit_time().unwrap())
        .unwrap()
}

/// Installs a package into an empty root: by dpkg itself where this user may, else by unpacking it.
fn install(packages: &Packages, root: &Path) {
    fs::create_dir_all(root).unwrap();
    if !xtask::is_root() {
        println!("SKIPPED: dpkg --install needs root; unpacked by dpkg-deb");
        said(Command::new("dpkg-deb").arg("-x").arg(&packages.debian).arg(root));
        return;
    }
    let admin = root.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        fs::create_dir_all(admin.join(folder)).unwrap();
    }
    fs::write(admin.join("status"), "").unwrap();
    said(
        Command::new("dpkg")
            .arg(format!("--root={}", root.display()))
            .args(["--force-depends", "--log=/dev/null", "--install"])
            .arg(&packages.debian),
    );
    let asked = format!("--root={}", root.display());
    let status = said(Command::new("dpkg").args([asked.as_str(), "--status", "hikyaku"]));
    assert!(status.contains("Status: install ok installed"), "{status}");
    assert!(status.contains("/etc/default/hikyaku-serve"), "no configuration file: {status}");
}

#[test]
fn a_package_is_installed_and_copies() {
    if !xtask::on_path("dpkg-deb") {
        println!("SKIPPED: no dpkg here");
        return;
    }
    let scratch = Scratch::new("packages");
    let packages = pack(&product(&scratch), &scratch.at("out")).unwrap();
    let root = scratch.at("root");
    install(&packages, &root);
    let version = concat!("hikyaku ", env!("CARGO_PKG_VERSION"), "\n");
    for name in ["hikyaku", "hscp", "hsftp"] {
        assert_eq!(said(Command::new(root.join("usr/bin").join(name)).arg("--version")), version);
    }
    let helper = run(&mut Command::new(root.join("usr/sbin/mount.hikyaku")));
    let error = String::from_utf8(helper.stderr).unwrap();
    assert!(error.contains("mount -t hikyaku"), "{error}");
    for file in ["share/man/man1/hikyaku-cp.1.gz", "share/doc/hikyaku/THIRDPARTY.txt"] {
        assert!(root.join("usr").join(file).is_file(), "{file}");
    }
    said(Command::new("gzip").arg("--test").arg(root.join("usr/share/man/man1/hikyaku.1.gz")));
    let completions = root.join("usr/share/bash-completion/completions/hikyaku");
    said(Command::new("bash").arg("-n").arg(completions));
    let sshd = Sshd::start("packages-copy");
    fs::write(sshd.at("a"), random(1, 3_000_001)).unwrap();
    said(
        Command::new(root.join("usr/bin/hscp"))
            .arg("-F")
            .arg(sshd.at("ssh_config"))
            .arg("--remote-path")
            .arg(root.join("usr/bin/hikyaku"))
            .arg(sshd.at("a"))
            .arg(sshd.far("b"))
            .env("XDG_STATE_HOME", sshd.at("state")),
    );
    assert!(fs::read(sshd.at("b")).unwrap() == random(1, 3_000_001));
}

#[test]
fn the_rpm_package_has_the_same_files_at_the_places_of_its_systems() {
    let scratch = Scratch::new("rpm");
    let mut product = product(&scratch);
    // The program itself takes long to compress.
    product.program = b"\0GLIBC_2.34\0".to_vec();
    let packages = pack(&product, &scratch.at("out")).unwrap();
    let package = rpm::Package::open(&packages.rpm).unwrap();
    assert_eq!(package.metadata.get_name().unwrap(), "hikyaku");
    assert_eq!(package.metadata.get_arch().unwrap(), product.target.processor);
    let requires = package.metadata.get_requires().unwrap();
    assert!(
        requires.iter().any(|need| need.name.starts_with("libc.so.6(GLIBC_2.")),
        "{requires:?}"
    );
    let mut found = std::collections::BTreeMap::new();
    for file in package.files().unwrap() {
        let file = file.unwrap();
        let meta = &file.metadata;
        let path = meta.path().display().to_string();
        found.insert(path, (meta.permissions(), file.content().map(<[u8]>::to_vec)));
    }
    let (mode, program) = &found["/usr/bin/hikyaku"];
    assert!(mode & 0o777 == 0o755 && program.as_ref() == Some(&product.program));
    for path in [
        "/usr/bin/hscp",
        "/usr/bin/hsftp",
        "/usr/sbin/mount.hikyaku",
        "/usr/share/man/man1/hikyaku-sftp.1.gz",
        "/usr/share/zsh/site-functions/_hikyaku",
        "/usr/share/licenses/hikyaku/LICENSE-MIT",
        "/usr/lib/systemd/system/hikyaku-serve.service",
        "/etc/default/hikyaku-serve",
    ] {
        assert!(found.contains_key(path), "{path}: {:?}", found.keys());
    }
    assert!(!found.keys().any(|path| path.contains("vendor-completions")), "{:?}", found.keys());
    // A static program needs no library.
    product.target = Target::named("x86_64-musl").unwrap();
    let packages = pack(&product, &scratch.at("static")).unwrap();
    let requires = rpm::Package::open(&packages.rpm).unwrap().metadata.get_requires().unwrap();
    assert!(!requires.iter().any(|need| need.name.contains("libc")), "{requires:?}");
}

#[test]
fn the_archive_is_installed_below_a_prefix_and_removed() {
    let scratch = Scratch::new("archive");
    let mut product = product(&scratch);
    product.program = b"#!/bin/sh\necho runs\n".to_vec();
    let packages = pack(&product, &scratch.at("out")).unwrap();
    let again = pack(&product, &scratch.at("again")).unwrap();
    for (file, again) in packages.files().into_iter().zip(again.files()) {
        assert!(fs::read(file).unwrap() == fs::read(again).unwrap(), "{} differs", file.display());
    }
    said(Command::new("tar").arg("-xzf").arg(&packages.archive).arg("-C").arg(scratch.at("")));
    let name = packages.archive.file_name().unwrap().to_string_lossy().into_owned();
    let installer = scratch.at(name.trim_end_matches(".tar.gz")).join("install.sh");
    let (prefix, home) = (scratch.at("prefix"), "share/man/man1/hikyaku-cp.1");
    let done = said(Command::new(&installer).arg("--prefix").arg(&prefix));
    assert!(done.starts_with("runs\n"), "{done}");
    assert!(prefix.join(home).is_file());
    assert_eq!(said(&mut Command::new(prefix.join("bin/hscp"))), "runs\n");
    said(Command::new(&installer).arg("--uninstall").arg("--prefix").arg(&prefix));
    assert_eq!(listing(&prefix), []);
}

#[test]
fn checksums_and_parts_belong_to_the_packages() {
    let scratch = Scratch::new("checksums");
    let mut product = product(&scratch);
    product.program = b"#!/bin/sh\n".to_vec();
    let out = scratch.at("out");
    let packages = pack(&product, &out).unwrap();
    checksums(&out, &packages.files()).unwrap();
    let check = |out: &Path| {
        run(Command::new("sha256sum").args(["--check", "SHA256SUMS"]).current_dir(out)).status
    };
    assert!(check(&out).success());
    fs::write(&packages.archive, "another").unwrap();
    assert!(!check(&out).success());
    let parts: serde_json::Value =
        serde_json::from_slice(&fs::read(&packages.parts).unwrap()).unwrap();
    let named = |name: &str| {
        let all = parts["components"].as_array().unwrap().iter();
        all.filter(|part| part["name"] == name).count()
    };
    assert_eq!(parts["bomFormat"], "CycloneDX");
    // What encrypts is in the program; what tests use is not.
    assert_eq!((named("aws-lc-rs"), named("hikyaku-copy"), named("criterion")), (1, 1, 0));
}
