//! The program under test, for the packages that judge it from outside.

use anyhow::{Context, Result, ensure};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::SystemTime;

/// Where `hikyaku` is: `HK_BIN`, or what cargo has made beside the tests. It is built if it is older than its sources.
///
/// A run of all tests has built it, and cargo notes its sources only if it is asked for by name. `-p` would select other
/// features of its dependencies, and compile most of them again.
pub fn program() -> Result<PathBuf> {
    if let Some(named) = env::var_os("HK_BIN") {
        return Ok(named.into());
    }
    // TARGET/PROFILE/deps/TEST
    let test = env::current_exe().context("the test's own path is unknown")?;
    let folder = test.ancestors().nth(2).context("a test that is not in a target folder")?;
    let program = folder.join("hikyaku");
    if !is_fresh(&program) {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["build", "--quiet", "--workspace", "--bin", "hikyaku"]);
        if folder.ends_with("release") {
            build.arg("--release");
        }
        let built = build.current_dir(crate::workspace()).status().context("cannot run cargo")?;
        ensure!(built.success(), "hikyaku does not build");
    }
    Ok(program)
}

/// Whether it is newer than each of the files that the compiler has noted beside it.
fn is_fresh(program: &Path) -> bool {
    let time = |path: &Path| fs::metadata(path).and_then(|meta| meta.modified()).ok();
    let notes = fs::read_to_string(program.with_extension("d")).unwrap_or_default();
    let Some((built, sources)) = time(program).zip(notes.split_once(": ")) else { return false };
    let is_older = |source: &str| time(Path::new(source)).is_some_and(|time| time <= built);
    sources.1.split_whitespace().all(is_older) && built > SystemTime::UNIX_EPOCH
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::time::Duration;

    /// Or what others wrote is compiled once for tests and once more for programs and documents.
    #[test]
    fn programs_and_tests_have_one_selection_of_features() {
        let selected = |edges: &str| -> BTreeSet<String> {
            let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
            let words = ["tree", "--workspace", "--offline", "--prefix=none", "--no-dedupe"];
            let mut tree = Command::new(cargo);
            tree.args(words).args(["--format={p} [{f}]", "--edges", edges]);
            let output = tree.current_dir(crate::workspace()).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
        };
        let (programs, tests) = (selected("normal,build"), selected("normal,build,dev"));
        let differ: Vec<_> = programs.difference(&tests).collect();
        assert!(programs.len() > 100, "{programs:?}");
        assert!(differ.is_empty(), "{differ:#?}: what tests use has to stand in fuzz/Cargo.toml");
    }

    #[test]
    fn a_program_is_as_old_as_its_sources() {
        let folder = env::temp_dir().join(format!("hikyaku-program-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (program, source) = (folder.join("hikyaku"), folder.join("main.rs"));
        fs::write(&source, "").unwrap();
        fs::write(&program, "").unwrap();
        assert!(!is_fresh(&program), "nothing is noted of it");
        let note = format!("{}: {}\n", program.display(), source.display());
        fs::write(program.with_extension("d"), note).unwrap();
        assert!(is_fresh(&program));
        let later = fs::metadata(&program).unwrap().modified().unwrap() + Duration::from_secs(1);
        fs::File::open(&source).unwrap().set_modified(later).unwrap();
        assert!(!is_fresh(&program), "a source is newer");
        fs::remove_dir_all(&folder).unwrap();
    }
}
