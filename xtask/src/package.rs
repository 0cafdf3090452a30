//! `cargo xtask dist`: packages for users.

use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use xtask::dist::{Packages, Product, TARGETS, Target, Texts, checksums, commit_time, pack};
use xtask::{Build, Profile, on_path, workspace};

/// Options of `cargo xtask dist`.
#[derive(clap::Args)]
pub(crate) struct DistArgs {
    /// Kind of machine, such as x86_64-musl; several may be given [default: x86_64-musl]
    #[arg(long = "target", value_name = "TARGET", value_parser = target)]
    targets: Vec<Target>,
    /// Pack this program, which was built for the one TARGET, in place of building one
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Where the packages go [default: target/packages]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

fn target(name: &str) -> Result<Target, String> {
    let names = || TARGETS.map(|target| target.name_of_flag()).join(", ");
    Target::named(name).ok_or_else(|| format!("expected one of {}", names()))
}

/// Builds and packs, and tries what can be tried here.
pub(crate) fn run(args: &DistArgs) -> Result<ExitCode> {
    let targets = if args.targets.is_empty() { &TARGETS[..1] } else { &args.targets };
    ensure!(args.program.is_none() || targets.len() == 1, "--program needs one --target");
    let folder = args.out.clone().unwrap_or_else(|| workspace().join("target/packages"));
    let mut programs = Vec::new();
    for target in targets {
        programs.push(match &args.program {
            Some(program) => program.clone(),
            None => target.build(&target.tools()?)?,
        });
    }
    let texts = texts(&programs)?;
    let mut files = Vec::new();
    for (target, program) in targets.iter().zip(&programs) {
        let product = Product::new(program, *target, texts.clone(), commit_time()?)?;
        let product = product.with_far(targets.iter().zip(&programs))?;
        let packages = pack(&product, &folder)?;
        println!("{}: {}", target.name(), tried(&packages)?);
        files.extend(packages.files().map(Path::to_owned));
    }
    let sums = checksums(&folder, &files.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
    files.push(sums);
    files.iter().for_each(|file| println!("{}", file.display()));
    Ok(ExitCode::SUCCESS)
}

/// The manual pages and completions, of a program that runs on this machine.
fn texts(programs: &[PathBuf]) -> Result<Texts> {
    for program in programs {
        if let Some(texts) = Texts::of(program)? {
            return Ok(texts);
        }
    }
    let build = Build { profile: Profile::Dev, packages: &["hikyaku-cli"] };
    let texts = Texts::of(&build.program("hikyaku")?)?;
    texts.context("the program that was built for this machine does not run here")
}

/// Unpacks the Debian package as dpkg does and starts its program. Says what came of it.
fn tried(packages: &Packages) -> Result<String> {
    if !on_path("dpkg-deb") {
        return Ok("not tried: no dpkg-deb here".to_owned());
    }
    let root = std::env::temp_dir().join(format!("hikyaku-root-{}", std::process::id()));
    let unpacked = Command::new("dpkg-deb").arg("-x").arg(&packages.debian).arg(&root).output();
    let unpacked = unpacked.context("cannot run dpkg-deb")?;
    let started = Command::new(root.join("usr/bin/hikyaku")).arg("--version").output();
    let _ = std::fs::remove_dir_all(&root);
    if !unpacked.status.success() {
        bail!("dpkg-deb: {}", String::from_utf8_lossy(&unpacked.stderr).trim());
    }
    Ok(match started {
        Ok(output) if output.status.success() => {
            let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            format!("the package's program runs ({version})")
        }
        _ => "the package's program does not run on this machine".to_owned(),
    })
}
