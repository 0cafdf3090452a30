//! Where a lie is told: a target with something beside it that must stay as it is.

use hikyaku_bench_liars::Asked;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// A folder that goes with this value.
pub(crate) struct Scene(PathBuf);

/// What lies beside the target.
const BESIDE: [&str; 6] = ["list", "offered", "outside", "ssh", "state", "target"];

/// The program under test.
pub(crate) fn program() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| xtask::program().unwrap())
}

impl Scene {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hikyaku-liar-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        for dir in ["target/run7", "outside", "offered/run7", "state"] {
            fs::create_dir_all(path.join(dir)).unwrap();
        }
        fs::write(path.join("outside/victim"), b"as it was").unwrap();
        symlink("../../outside", path.join("target/run7/out")).unwrap();
        fs::write(path.join("list"), "a\nd/b\n").unwrap();
        fs::write(path.join("offered/run7/a"), b"a").unwrap();
        let large = vec![5; (hikyaku_bench_liars::SEGMENTS as usize) << 20];
        fs::write(path.join("offered/run7/b"), large).unwrap();
        fs::write(path.join("offered/secret"), b"for nobody").unwrap();
        Self(path)
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.at(name).display().to_string()
    }

    /// A word of a command line.
    pub(crate) fn word(&self, word: &str) -> String {
        match word {
            "LIST" => self.path("list"),
            "MANIFEST" => self.path("state/manifest"),
            word => word.to_owned(),
        }
    }

    /// `hikyaku cp` with a liar in the place of ssh.
    pub(crate) fn cp(&self, role: &str, name: &str, words: &[String]) -> Command {
        let (liar, program) = (env!("CARGO_BIN_EXE_liar"), program().display());
        // The host `honest` has a far side that is one.
        let ssh = format!(
            "#!/bin/sh\n[ \"$1\" = -G ] && exec echo hostname 127.0.0.1\n\
             case \" $* \" in *' honest '*) exec {program} serve --stdio 2>/dev/null;; esac\n\
             exec {liar} {role} {name} 2>/dev/null\n"
        );
        fs::write(self.at("ssh"), ssh).unwrap();
        fs::set_permissions(self.at("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = self.command("cp");
        command.args(["-S", &self.path("ssh"), "--window", "64MB", "--timeout", "5s"]);
        command.args(["--retry-for", "0"]).args(words).stdin(Stdio::null());
        command
    }

    /// The program, with nothing of its user's.
    pub(crate) fn command(&self, verb: &str) -> Command {
        let mut command = Command::new(program());
        command.arg(verb).current_dir(self.at("target"));
        for name in ["XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME"] {
            command.env(name, self.at("state"));
        }
        command.env_remove("SSH_CONNECTION");
        command
    }

    /// What is not as it was, and may not be otherwise after this was asked for.
    pub(crate) fn touched(&self, asked: Asked) -> Option<String> {
        let names = |path: &str, may_be: &[&str]| -> Vec<String> {
            let entries = fs::read_dir(self.at(path)).into_iter().flatten();
            let names = entries.map(|entry| entry.unwrap().file_name().display().to_string());
            names.filter(|name| !may_be.contains(&name.as_str())).collect()
        };
        let target: &[&str] = match asked {
            // The directory above what was asked for.
            Asked::List => &["run7", "d"],
            Asked::Pattern => &["run7", "a.txt"],
            _ => &["run7"],
        };
        let run7: Vec<String> = match asked {
            Asked::Archive | Asked::Anything | Asked::Manifest | Asked::Tree => Vec::new(),
            _ => names("target/run7", &["out"]),
        };
        let target = match asked {
            Asked::Anything => Vec::new(),
            _ => names("target", target),
        };
        let outside = names("outside", &["victim"]);
        let wrong = [names("", &BESIDE), outside, target, names("target/d", &[]), run7];
        let is_victim = fs::read(self.at("outside/victim")).is_ok_and(|old| old == b"as it was");
        let is_root =
            ["/hikyaku-was-here", "/victim", "/run7"].iter().any(|p| Path::new(p).exists());
        let wrong = wrong.concat();
        match wrong.is_empty() && is_victim && !is_root {
            true => None,
            false => Some(format!("{wrong:?}, victim {is_victim}, root {is_root}")),
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
