//! Packages of the product: an archive, a Debian and an RPM package, checksums and a list of parts.
//!
//! A [`Product`] is what a user gets, read from the tree and from the built program. [`pack`] writes the files. Equal
//! products give equal files: names are sorted, owners are root, and all times are those of the commit.

mod building;
mod contents;
mod deb;
mod licences;
mod parts;
mod product;
mod rpm;
mod tar;
mod target;
mod tools;
mod tree;

pub use product::{Product, Texts, commit_time};
pub use target::{Libc, TARGETS, Target, Tools, target_folder};

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of one product.
#[derive(Clone, Debug)]
pub struct Packages {
    /// `.tar.gz`: everything below one directory, with an installation script.
    pub archive: PathBuf,
    /// `.deb`.
    pub debian: PathBuf,
    /// `.rpm`.
    pub rpm: PathBuf,
    /// The parts of the program, as CycloneDX JSON.
    pub parts: PathBuf,
}

impl Packages {
    /// All files.
    pub fn files(&self) -> [&Path; 4] {
        [&self.archive, &self.debian, &self.rpm, &self.parts]
    }
}

/// Writes the packages of `product` into `folder`, which is created if it does not exist.
pub fn pack(product: &Product, folder: &Path) -> Result<Packages> {
    let name = format!("hikyaku-{}-{}", product.version, product.target.name());
    let debian = format!("hikyaku_{}_{}.deb", product.version, product.target.debian);
    let rpm = format!("hikyaku-{}-1.{}.rpm", product.version, product.target.processor);
    let packages = Packages {
        archive: folder.join(format!("{name}.tar.gz")),
        debian: folder.join(debian),
        rpm: folder.join(rpm),
        parts: folder.join(format!("{name}.cdx.json")),
    };
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let archive = tar::write(&contents::archive(product)?, &format!("{name}/"), product.time)?;
    write(&packages.archive, &compressed(&archive)?)?;
    write(&packages.debian, &deb::write(product)?)?;
    write(&packages.rpm, &rpm::write(product)?)?;
    write(&packages.parts, &product.parts)?;
    Ok(packages)
}

/// Writes the files of `product` below a prefix such as `/usr/local`. A file that is replaced is never half written.
pub fn install(product: &Product, prefix: &Path) -> Result<()> {
    contents::installed(product)?.write(prefix)
}

/// Writes `SHA256SUMS` for files of `folder`, as `sha256sum --check` reads it.
pub fn checksums(folder: &Path, files: &[&Path]) -> Result<PathBuf> {
    let names: Vec<_> = files.iter().filter_map(|file| file.file_name()).collect();
    let sums = Command::new("sha256sum").arg("--").args(&names).current_dir(folder).output();
    let sums = sums.context("cannot run sha256sum")?;
    ensure!(sums.status.success(), "sha256sum: {}", String::from_utf8_lossy(&sums.stderr));
    let path = folder.join("SHA256SUMS");
    write(&path, &sums.stdout)?;
    Ok(path)
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// The form of gzip, without a name and without a time.
fn compressed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes)?;
    Ok(encoder.finish()?)
}
