//! The programs of other transports: built, or compiled, when a bench first asks for one.

use anyhow::{Context, Result, bail, ensure};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use xtask::{Need, ensure_present};

/// UDT4 comes as a library of Debian's.
const UDT: &str = "peer-udt";
const UDT_HEADER: &str = "/usr/include/udt/udt.h";
const COMPILER: &[Need] = &[Need::new("c++", "g++")];

/// What has been built so far.
#[derive(Default)]
pub(crate) struct Peers {
    built: RefCell<BTreeMap<String, PathBuf>>,
    /// Whether cargo has built those that it builds, which it does all at once.
    is_workspace_built: Cell<bool>,
}

impl Peers {
    /// The program of this name.
    pub(crate) fn program(&self, root: &Path, name: &str) -> Result<PathBuf> {
        if let Some(path) = self.built.borrow().get(name) {
            return Ok(path.clone());
        }
        if let Some(published) = INSTALLED.into_iter().find(|(known, _)| *known == name) {
            let path = install(root, published)?;
            self.built.borrow_mut().insert(name.to_owned(), path.clone());
            return Ok(path);
        }
        let folder = root.join("target/peers/release");
        if name == UDT {
            compile_udt(root, &folder)?;
        } else if !self.is_workspace_built.get() {
            build(root)?;
            self.is_workspace_built.set(true);
        }
        let path = folder.join(name);
        ensure!(path.is_file(), "there is no peer {name}");
        self.built.borrow_mut().insert(name.to_owned(), path.clone());
        Ok(path)
    }
}

/// What is published as a program is installed as its users install it.
const INSTALLED: [(&str, &str); 1] = [("qcp", "0.9.1")];

fn install(root: &Path, (name, version): (&str, &str)) -> Result<PathBuf> {
    let folder = root.join("target/peers/installed");
    println!("installing {name} {version} (minutes when it is the first time)");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["install", "--locked", "--quiet", "--version", version, name, "--root"])
        .arg(&folder)
        .stdin(Stdio::null())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "{name} cannot be installed");
    Ok(folder.join("bin").join(name))
}

/// They are a workspace of their own, so that nobody who does not compare has to build them.
fn build(root: &Path) -> Result<()> {
    println!("building the peers (minutes when it is the first time)");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--release", "--locked", "--quiet", "--manifest-path"])
        .arg(root.join("bench/peers/Cargo.toml"))
        .arg("--target-dir")
        .arg(root.join("target/peers"))
        .stdin(Stdio::null())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the peers do not build");
    Ok(())
}

fn compile_udt(root: &Path, folder: &Path) -> Result<()> {
    ensure_present(COMPILER)?;
    if !Path::new(UDT_HEADER).exists() {
        xtask::install(&["libudt-dev"])?;
    }
    std::fs::create_dir_all(folder)?;
    let mut command = Command::new("c++");
    command
        .args(["-O2", "-o"])
        .arg(folder.join(UDT))
        .arg(root.join("bench/peers/udt/peer-udt.cpp"))
        .args(["-ludt", "-lpthread"]);
    match xtask::run(&mut command, Duration::from_secs(120))?.success() {
        Ok(_) => Ok(()),
        Err(error) => bail!("{UDT} does not compile: {error:#}"),
    }
}
