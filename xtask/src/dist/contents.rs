//! Where everything is in a package.

use super::compressed;
use super::product::{Product, document, documents};
use super::tree::Tree;
use anyhow::Result;

/// Names under which the program does something else, and their places below a prefix.
const OTHER_NAMES: [(&str, &str); 3] =
    [("bin/hscp", "hikyaku"), ("bin/hsftp", "hikyaku"), ("sbin/mount.hikyaku", "../bin/hikyaku")];
/// The daemon's unit for systemd, and its settings.
const UNIT: &str = "packaging/hikyaku-serve.service";
const UNIT_SETTINGS: &str = "packaging/hikyaku-serve.default";
const INSTALLER: &str = "packaging/install.sh";
const LICENCES: [&str; 2] = ["LICENSE-MIT", "LICENSE-APACHE"];

/// The archive's files: a prefix such as `/usr/local`, and the script that copies them there.
pub(super) fn archive(product: &Product) -> Result<Tree> {
    let mut tree = installed(product)?;
    for licence in LICENCES {
        tree.file(licence, &document(licence)?);
    }
    tree.file("README.md", &document("README.md")?);
    tree.program("install.sh", &document(INSTALLER)?);
    Ok(tree)
}

/// The files below a prefix such as `/usr/local`.
pub(super) fn installed(product: &Product) -> Result<Tree> {
    let mut tree = Tree::default();
    common(&mut tree, "", product)?;
    for (page, text) in &product.texts.pages {
        tree.file(format!("share/man/man1/{page}"), text);
    }
    let doc = "share/doc/hikyaku";
    for licence in LICENCES {
        tree.file(format!("{doc}/{licence}"), &document(licence)?);
    }
    tree.file(format!("{doc}/hikyaku-serve.service"), &document(UNIT)?);
    tree.file(format!("{doc}/hikyaku-serve.default"), &document(UNIT_SETTINGS)?);
    tree.file(format!("{doc}/hikyaku.cdx.json"), &product.parts);
    Ok(tree)
}

/// The files of a Debian package, as Debian's policy places them.
pub(super) fn debian(product: &Product) -> Result<Tree> {
    let mut tree = Tree::default();
    common(&mut tree, "usr/", product)?;
    for (page, text) in &product.texts.pages {
        tree.file(format!("usr/share/man/man1/{page}.gz"), &compressed(text)?);
    }
    let mut copyright = Vec::new();
    for licence in LICENCES {
        copyright.extend(document(licence)?);
        copyright.push(b'\n');
    }
    tree.file("usr/share/doc/hikyaku/copyright", &copyright);
    tree.file("usr/lib/systemd/system/hikyaku-serve.service", &document(UNIT)?);
    tree.file("etc/default/hikyaku-serve", &document(UNIT_SETTINGS)?);
    Ok(tree)
}

/// The files of an RPM package, as Fedora and openSUSE place them.
pub(super) fn rpm(product: &Product) -> Result<Tree> {
    let mut tree = Tree::default();
    common(&mut tree, "usr/", product)?;
    for (page, text) in &product.texts.pages {
        tree.file(format!("usr/share/man/man1/{page}.gz"), &compressed(text)?);
    }
    for ((shell, command), script) in &product.texts.completions {
        if *shell == "zsh" {
            tree.remove(&format!("usr/{}", place_of_completion(shell, command)));
            tree.file(format!("usr/share/zsh/site-functions/_{command}"), script);
        }
    }
    for licence in LICENCES {
        tree.file(format!("usr/share/licenses/hikyaku/{licence}"), &document(licence)?);
    }
    tree.file("usr/lib/systemd/system/hikyaku-serve.service", &document(UNIT)?);
    tree.file("etc/default/hikyaku-serve", &document(UNIT_SETTINGS)?);
    Ok(tree)
}

/// What all have, at the same places below their prefixes.
fn common(tree: &mut Tree, prefix: &str, product: &Product) -> Result<()> {
    tree.program(format!("{prefix}bin/hikyaku"), &product.program);
    for (processor, program) in &product.far {
        tree.program(format!("{prefix}share/hikyaku/far/{processor}/hikyaku"), program);
    }
    for (name, to) in OTHER_NAMES {
        tree.link(format!("{prefix}{name}"), to);
    }
    for ((shell, command), script) in &product.texts.completions {
        tree.file(format!("{prefix}{}", place_of_completion(shell, command)), script);
    }
    let doc = format!("{prefix}share/doc/hikyaku");
    tree.file(format!("{doc}/THIRDPARTY.txt"), &product.licences);
    tree.file(format!("{doc}/README.md"), &document("README.md")?);
    for name in documents()? {
        let name = name.display().to_string();
        tree.file(format!("{doc}/{name}"), &document(&name)?);
    }
    Ok(())
}

/// Where shells look for completions by themselves.
fn place_of_completion(shell: &str, command: &str) -> String {
    match shell {
        "bash" => format!("share/bash-completion/completions/{command}"),
        "zsh" => format!("share/zsh/vendor-completions/_{command}"),
        _ => format!("share/fish/vendor_completions.d/{command}.fish"),
    }
}
