//! `cargo xtask install`: builds hikyaku and puts it below a prefix, for this user or for all.

use anyhow::{Context, Result};
use std::env::consts::ARCH;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};
use xtask::dist::{
    Libc, Product, TARGETS, Target, Texts, Tools, commit_time, install, target_folder,
};

/// Options of `cargo xtask install`.
#[derive(clap::Args)]
pub(crate) struct InstallArgs {
    /// Where it goes: DIR/bin, DIR/share [default: ~/.local]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// Build a program that needs the C library of this machine, without tools that would be fetched
    #[arg(long)]
    dynamic: bool,
}

pub(crate) fn run(args: &InstallArgs) -> Result<ExitCode> {
    let begin = Instant::now();
    let prefix = match &args.prefix {
        Some(prefix) => std::path::absolute(prefix)?,
        None => Path::new(&std::env::var_os("HOME").context("HOME is not set: try --prefix")?)
            .join(".local"),
    };
    fs::create_dir_all(&prefix).with_context(|| format!("cannot make {}", prefix.display()))?;
    let (target, tools) = chosen(args)?;
    let (kind, folder) = (target.libc.kind(), target_folder());
    let program = target.build(&tools).context(match target.libc {
        Libc::Musl => "try: cargo xtask install --dynamic",
        Libc::Glibc => "hikyaku was not built",
    })?;
    let texts = Texts::of(&program)?.context("the program that was built does not run here")?;
    let now = || SystemTime::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_secs());
    let product = Product::new(&program, target, texts, commit_time().unwrap_or_else(|_| now()))?;
    install(&product, &prefix)?;
    println!("{} has {:.1} GB", folder.display(), bytes_below(&folder) as f64 / 1e9);
    let bin = prefix.join("bin");
    if !std::env::var_os("PATH")
        .is_some_and(|path| std::env::split_paths(&path).any(|at| at == bin))
    {
        println!("to find it by its name: export PATH=\"{}:$PATH\"", bin.display());
    }
    let (megabytes, time) = (product.program.len() / 1_000_000, shown(begin.elapsed()));
    println!("installed {} ({kind}, {megabytes} MB) in {time}", bin.join("hikyaku").display());
    Ok(ExitCode::SUCCESS)
}

/// The kind of program that can be built here, with its tools.
fn chosen(args: &InstallArgs) -> Result<(Target, Tools)> {
    let of = |libc| {
        let is_it = |target: &Target| target.processor == ARCH && target.libc == libc;
        TARGETS.into_iter().find(is_it).with_context(|| format!("hikyaku is not made for {ARCH}"))
    };
    if !args.dynamic {
        let target = of(Libc::Musl)?;
        match target.tools() {
            Ok(tools) => return Ok((target, tools)),
            Err(error) => println!(
                "no static program can be built here: {error:#}\n\
                 a dynamic one runs where the C library is as new as that of this machine"
            ),
        }
    }
    let target = of(Libc::Glibc)?;
    Ok((target, target.tools()?))
}

fn shown(time: Duration) -> String {
    match time.as_secs() {
        seconds @ ..90 => format!("{seconds} s"),
        seconds => format!("{} min", (seconds + 30) / 60),
    }
}

/// Bytes on the disk. What cannot be read counts as nothing.
fn bytes_below(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)))
        .map(|(path, found)| match found.is_dir() {
            true => bytes_below(&path),
            false => found.blocks() * 512,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_in_minutes_when_they_are_long() {
        let of = |seconds| shown(Duration::from_secs(seconds));
        assert_eq!([of(4), of(89), of(90), of(749)], ["4 s", "89 s", "2 min", "12 min"]);
    }
}
