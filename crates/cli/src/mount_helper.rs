//! The program under the name `mount.hikyaku`: what mount(8) starts for the type `hikyaku`, so that fstab(5) can name a
//! mount. It becomes `hikyaku mount`.

use crate::fail;
use anyhow::{Context, Error, Result};
use hikyaku_console::{Exit, ExitCode};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Parent of the state folder where the environment names none: at boot, mount(8) has no home directory.
const STATE_PARENT: &str = "/var/lib";

/// What mount(8) wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// Arguments of `hikyaku`.
    Mount(Vec<OsString>),
    /// `-f`: everything but the mount itself.
    Nothing,
}

/// Becomes `hikyaku mount`.
pub(crate) fn run() -> Exit {
    let wish = match wish(std::env::args_os().skip(1)) {
        Ok(wish) => wish,
        Err(error) => return fail(&error),
    };
    let Wish::Mount(arguments) = wish else { return ExitCode::Success.into() };
    let own = match std::env::current_exe() {
        Ok(own) => own,
        Err(error) => return fail(&Error::from(error).context("cannot find the own program")),
    };
    let mut command = Command::new(&own);
    command.args(arguments);
    if ["HOME", "XDG_STATE_HOME"].iter().all(|name| std::env::var_os(name).is_none()) {
        command.env("XDG_STATE_HOME", STATE_PARENT);
    }
    let error = command.exec();
    fail(&Error::from(error).context(format!("cannot run {}", own.display())))
}

/// Reads what mount(8) passes (mount(8), "External helpers"): `SPEC DIR [-sfnv] [-N NAMESPACE] [-o OPTIONS] [-t TYPE]`.
pub(crate) fn wish(arguments: impl IntoIterator<Item = OsString>) -> Result<Wish> {
    let mut arguments = arguments.into_iter();
    let (mut places, mut options, mut is_fake) = (Vec::new(), Vec::new(), false);
    while let Some(argument) = arguments.next() {
        match argument.as_bytes() {
            b"-o" => {
                let text = arguments.next().context("-o without options")?;
                options.extend(options_of(&text));
            }
            b"-t" | b"-N" => drop(arguments.next()),
            [b'-', flags @ ..] => is_fake |= flags.contains(&b'f'),
            _ => places.push(argument),
        }
    }
    let [_, _] = places.as_slice() else {
        let text = "try: mount -t hikyaku hikyaku://HOST/PATH DIRECTORY";
        return Err(Error::msg(text).context("a mount needs a source and a directory"));
    };
    if is_fake {
        return Ok(Wish::Nothing);
    }
    Ok(Wish::Mount(["mount".into()].into_iter().chain(options).chain(places).collect()))
}

/// Options of `hikyaku mount` that may stand behind `-o`, with `_` for `-`: fstab(5) has no other place for them.
const OPTIONS: [&str; 7] = ["attr_cache", "attr_ttl", "cache", "locks", "pipes", "timeout", "via"];

/// Those of them that have no value.
const FLAGS: [&str; 1] = ["no_udp"];

/// The options behind `-o`, as arguments. Those that fstab(5) reserves for other programs (`x-...`, `X-...` and `comment=`)
/// are left out, and so is `rw`: mount(8) passes that whenever nobody said `ro`, and a server that lets its clients read
/// only would refuse it.
fn options_of(text: &OsStr) -> impl Iterator<Item = OsString> {
    let text = text.to_string_lossy().into_owned();
    let is_kept = |option: &&str| {
        let is_foreign = ["x-", "X-", "comment="].iter().any(|start| option.starts_with(start));
        *option != "rw" && !is_foreign
    };
    let is_ours = |option: &&str| match option.split_once('=') {
        Some((name, _)) => OPTIONS.contains(&name),
        None => FLAGS.contains(option),
    };
    let (ours, others): (Vec<&str>, Vec<&str>) = text.split(',').filter(is_kept).partition(is_ours);
    let long = |option: &str| match option.split_once('=') {
        Some((name, value)) => format!("--{}={value}", name.replace('_', "-")),
        None => format!("--{}", option.replace('_', "-")),
    };
    let ours: Vec<OsString> = ours.into_iter().map(|option| long(option).into()).collect();
    ours.into_iter().chain(["-o".into(), others.join(",").into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args;

    fn wish_of(text: &str) -> Result<Wish> {
        wish(text.split_whitespace().map(OsString::from))
    }

    #[test]
    fn mounts_as_mount_asks() {
        let asked = "hikyaku://node1/data /mnt -sv -t hikyaku -o rw,_netdev,attr_cache=60s,no_udp,x-systemd.automount,allow_other";
        let Wish::Mount(words) = wish_of(asked).unwrap() else { panic!("no mount") };
        let shown: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        assert_eq!(
            shown,
            [
                "mount",
                "--attr-cache=60s",
                "--no-udp",
                "-o",
                "_netdev,allow_other",
                "hikyaku://node1/data",
                "/mnt"
            ]
        );
        let line = [OsString::from("hikyaku")].into_iter().chain(words);
        assert!(args::parse(line).is_ok());
    }

    #[test]
    fn a_fake_mount_does_nothing() {
        assert_eq!(wish_of("hikyaku://node1/data /mnt -nf").unwrap(), Wish::Nothing);
    }

    #[test]
    fn a_mount_needs_two_places() {
        for text in ["", "hikyaku://node1/data", "a b c", "a b -o"] {
            assert!(wish_of(text).is_err(), "{text}");
        }
    }
}
