//! Writes Debian packages (deb(5)): an `ar` archive of a version, the control files, and the data.

use super::product::Product;
use super::target::Libc;
use super::tree::Tree;
use super::{compressed, contents, tar};
use anyhow::Result;

/// Files below `/etc`, which dpkg does not overwrite when the administrator has changed them.
const CONFFILES: &str = "/etc/default/hikyaku-serve\n";

/// What the program is, in lines.
pub(super) const DESCRIPTION: &str = "\
hikyaku copies files at line rate over paths of 10-500 ms and 0-10 % loss,
with its own encrypted transport over UDP. It starts the far side through
ssh, as scp does. It also mounts remote files, carries connections of other
programs, and measures and emulates paths.";

/// The package.
pub(super) fn write(product: &Product) -> Result<Vec<u8>> {
    let data = contents::debian(product)?;
    let mut control = Tree::default();
    control.file("control", self::control(product, data.size()).as_bytes());
    control.file("conffiles", CONFFILES.as_bytes());
    let parts = [
        ("debian-binary", b"2.0\n".to_vec()),
        ("control.tar.gz", compressed(&tar::write(&control, "./", product.time)?)?),
        ("data.tar.gz", compressed(&tar::write(&data, "./", product.time)?)?),
    ];
    Ok(ar(&parts, product.time))
}

/// What dpkg is told of the package. The length is in KiB.
fn control(product: &Product, bytes: usize) -> String {
    let depends = match product.target.libc {
        Libc::Musl => String::new(),
        Libc::Glibc => {
            format!("Depends: libc6 (>= 2.{}), libgcc-s1\n", glibc_needed(&product.program))
        }
    };
    format!(
        "Package: hikyaku\n\
         Version: {}\n\
         Architecture: {}\n\
         Maintainer: The hikyaku developers <hikyaku@localhost>\n\
         Installed-Size: {}\n\
         {depends}Recommends: openssh-client\n\
         Suggests: fuse3\n\
         Section: net\n\
         Priority: optional\n\
         Description: fast file transfer over long fat networks\n {}\n",
        product.version,
        product.target.debian,
        bytes.div_ceil(1024),
        DESCRIPTION.replace('\n', "\n "),
    )
}

/// The least glibc that a dynamic program runs with, as the second part of its number: the highest version of a
/// symbol that the program names.
pub(super) fn glibc_needed(program: &[u8]) -> u32 {
    const MARK: &[u8] = b"GLIBC_2.";
    let number = |at: usize| -> Option<u32> {
        let digits = program[at + MARK.len()..].iter().take_while(|byte| byte.is_ascii_digit());
        let digits: Vec<u8> = digits.copied().take(4).collect();
        String::from_utf8(digits).ok()?.parse().ok()
    };
    let marks = program.windows(MARK.len()).enumerate().filter(|(_, bytes)| *bytes == MARK);
    marks.filter_map(|(at, _)| number(at)).max().unwrap_or_default()
}

/// An archive of the common form (ar(5)), all owned by root.
fn ar(parts: &[(&str, Vec<u8>)], time: u64) -> Vec<u8> {
    let mut archive = b"!<arch>\n".to_vec();
    for (name, bytes) in parts {
        let size = bytes.len();
        let head = format!("{name:<16}{time:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 0, 0, "100644");
        archive.extend(head.as_bytes());
        archive.extend(bytes);
        // Each part begins at an even place.
        if size % 2 == 1 {
            archive.push(b'\n');
        }
    }
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_symbol_tells_the_glibc_that_is_needed() {
        assert_eq!(glibc_needed(b"\0GLIBC_2.4\0GLIBC_2.34\0GLIBC_2.17\0GLIBC_2."), 34);
        assert_eq!(glibc_needed(b"static"), 0);
    }

    #[test]
    fn parts_begin_at_even_places() {
        let archive = ar(&[("a", b"123".to_vec()), ("b", b"4".to_vec())], 5);
        let text = String::from_utf8(archive).unwrap();
        let head = |name: &str, size: usize| {
            format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{size:<10}`\n", 5, 0, 0, 100644)
        };
        assert_eq!(text, format!("!<arch>\n{}123\n{}4\n", head("a", 3), head("b", 1)));
        assert_eq!(head("a", 3).len(), 60);
    }
}
