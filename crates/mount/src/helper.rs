//! `mount.hikyaku`: the program by another name, which mount(8) calls for file systems of type `hikyaku`.
//!
//! mount(8) calls `mount.TYPE SOURCE DIRECTORY [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]`. `fstab` has no place for other
//! options than those behind `-o`, so some of those are options of `hikyaku mount` there.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// The name by which mount(8) calls the program.
const NAME: &str = "mount.hikyaku";
/// Options of `hikyaku mount` that may stand behind `-o`, with `_` for `-`.
const OPTIONS: [&str; 4] = ["attr_cache", "attr_ttl", "cache", "timeout"];

/// The arguments of the program, the name first, as if it had been called by its own name.
pub fn as_helper(arguments: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut arguments = arguments.into_iter();
    let name = arguments.next();
    if !name.as_deref().is_some_and(is_helper) {
        return name.into_iter().chain(arguments).collect();
    }
    let mut all: Vec<OsString> = name.into_iter().chain(["mount".into()]).collect();
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("-t" | "-N") => drop(arguments.next()),
            Some("-o") => {
                let options = arguments.next().unwrap_or_default();
                all.extend(options_of(&options.to_string_lossy()));
            }
            // Not to mount, only to look: the command line has been read.
            Some(flags) if is_flags(flags) && flags.contains('f') => {
                return all.into_iter().take(1).chain(["--version".into()]).collect();
            }
            Some(flags) if is_flags(flags) => {}
            _ => all.push(argument),
        }
    }
    all
}

/// Whether this process was called by mount(8).
pub(crate) fn is_called() -> bool {
    std::env::args_os().next().is_some_and(|name| is_helper(&name))
}

fn is_helper(name: &OsStr) -> bool {
    Path::new(name).file_name() == Some(OsStr::new(NAME))
}

fn is_flags(text: &str) -> bool {
    let flags = text.strip_prefix('-').unwrap_or_default();
    !flags.is_empty() && flags.chars().all(|flag| "sfnv".contains(flag))
}

/// The options behind `-o`, as arguments.
fn options_of(text: &str) -> impl Iterator<Item = OsString> {
    let (ours, others): (Vec<&str>, Vec<&str>) = text.split(',').partition(|option| {
        option.split_once('=').is_some_and(|(name, _)| OPTIONS.contains(&name))
    });
    let ours = ours.into_iter().filter_map(|option| option.split_once('='));
    let ours: Vec<OsString> =
        ours.map(|(name, value)| format!("--{}={value}", name.replace('_', "-")).into()).collect();
    ours.into_iter().chain(["-o".into(), others.join(",").into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn translated(text: &str) -> String {
        let arguments = text.split_whitespace().map(OsString::from);
        as_helper(arguments).join(OsStr::new(" ")).into_string().unwrap()
    }

    #[test]
    fn what_mount_says_is_a_command_line_of_hikyaku_mount() {
        let name = "/sbin/mount.hikyaku";
        for (given, wanted) in [
            ("lab:/data /mnt -o rw,_netdev", "mount lab:/data /mnt -o rw,_netdev"),
            (
                "lab:/data /mnt -v -n -o ro,attr_cache=60s,timeout=5s -t hikyaku",
                "mount lab:/data /mnt --attr-cache=60s --timeout=5s -o ro",
            ),
            ("a:/ /mnt -sf", "--version"),
        ] {
            assert_eq!(translated(&format!("{name} {given}")), format!("{name} {wanted}"));
        }
        assert_eq!(translated("hikyaku mount -f a:/ /mnt"), "hikyaku mount -f a:/ /mnt");
    }
}
