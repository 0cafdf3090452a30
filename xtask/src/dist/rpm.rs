//! Writes RPM packages, in the format that all rpm(8) from version 4 on read.

use super::contents;
use super::deb::glibc_needed;
use super::product::Product;
use super::target::Libc;
use super::tree::{Entry, Tree};
use anyhow::{Context, Result};
use rpm::{BuildConfig, CompressionWithLevel, Dependency, FileOptions, PackageBuilder};

/// The package.
pub(super) fn write(product: &Product) -> Result<Vec<u8>> {
    let time = u32::try_from(product.time).context("the time of the commit is after 2106")?;
    let config = BuildConfig::v4().source_date(time).compression(CompressionWithLevel::Gzip(9));
    let name = "hikyaku";
    let summary = "Fast file transfer over long fat networks";
    let licence = "MIT OR Apache-2.0";
    let mut builder =
        PackageBuilder::new(name, &product.version, licence, product.target.processor, summary);
    builder.using_config(config).release("1").description(super::deb::DESCRIPTION);
    // The host that builds is no part of the product.
    builder.build_host("localhost").recommends(Dependency::any("openssh-clients"));
    builder.suggests(Dependency::any("fuse3"));
    if product.target.libc == Libc::Glibc {
        let symbol = format!("libc.so.6(GLIBC_2.{})(64bit)", glibc_needed(&product.program));
        builder.requires(Dependency::any(symbol));
    }
    add(&mut builder, &contents::rpm(product)?)?;
    let package = builder.build().context("cannot make the RPM package")?;
    let mut bytes = Vec::new();
    package.write(&mut bytes).context("cannot write the RPM package")?;
    Ok(bytes)
}

fn add(builder: &mut PackageBuilder, tree: &Tree) -> Result<()> {
    for (path, entry) in tree.entries() {
        let place = format!("/{path}");
        match entry {
            Entry::Link(to) => {
                builder.with_symlink(FileOptions::symlink(place, to))?;
            }
            Entry::File { bytes, mode } => {
                let options = FileOptions::new(place).permissions(u16::try_from(*mode)?);
                // rpm(8) keeps what the administrator has changed.
                let options =
                    if path.starts_with("etc/") { options.config().noreplace() } else { options };
                builder.with_file_contents(bytes.clone(), options)?;
            }
        }
    }
    Ok(())
}
