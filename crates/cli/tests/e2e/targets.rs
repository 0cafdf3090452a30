//! Every kind of target with every command that writes one: one table says what becomes of it.
//!
//! A program that renames a file over `/dev/null` destroys it for the whole machine. So each command runs in a mount
//! namespace with a `/dev` of its own, and the targets are nodes in the scratch directory.

mod ground;
mod guc;

use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon};
use ground::{Ground, Kind, Seen, serve_name};
use std::path::Path;
use std::process::Command;

/// What becomes of a target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outcome {
    /// The new content has the target's name; a file that was there is replaced.
    Replaced,
    /// The target is a link that stays; the file that it leads to has the new content.
    Behind,
    /// The target is a directory that stays; the new content is in it under the source's name.
    Beneath,
    /// The target stays what it is, and has taken the new content.
    Into,
    /// The target stays as it is, the command ends with an error, and says so by these words.
    Left(&'static str),
    /// The target stays what it is: either of the last two.
    IntoOrLeft,
    /// Of a link: it is replaced, or the file behind it is, or both stay and the command says so.
    Spared,
    /// Of an empty directory: it is replaced, or left.
    ReplacedOrLeft,
}

use Outcome::{Behind, Beneath, Into, IntoOrLeft, Left, Replaced, ReplacedOrLeft, Spared};

const SPECIAL: &str = "not a regular file; it is left unchanged";

/// A file that the user named, as `cp` between two hikyaku programs has it.
const fn native(kind: Kind) -> Outcome {
    match kind {
        Kind::Absent | Kind::File | Kind::ReadOnly => Replaced,
        Kind::Link => Behind,
        Kind::Dir => Beneath,
        Kind::Fifo | Kind::Device => Into,
        Kind::Socket => Left(SPECIAL),
    }
}

/// A file that the user named at a daemon or an FTP server: what is no file is left alone.
const fn by_requests(kind: Kind) -> Outcome {
    match kind {
        Kind::Fifo | Kind::Device | Kind::Socket => Left(SPECIAL),
        other => native(other),
    }
}

/// From daemons. What takes bytes in order is written into or refused.
const fn from_daemon(kind: Kind) -> Outcome {
    match kind {
        Kind::Link => Spared,
        Kind::Fifo | Kind::Device => IntoOrLeft,
        other => native(other),
    }
}

/// `sftp get` and `sftp put`, which open the name as OpenSSH's do.
const fn by_sftp(kind: Kind) -> Outcome {
    match kind {
        Kind::Socket => Left(""),
        other => native(other),
    }
}

/// `get -o FILE --force`.
const fn of_the_web(kind: Kind) -> Outcome {
    match kind {
        Kind::Link => Spared,
        Kind::Dir => Left(""),
        Kind::Fifo | Kind::Device => IntoOrLeft,
        Kind::Socket => Left(""),
        other => native(other),
    }
}

/// A name below the target.
const fn in_tree(kind: Kind) -> Outcome {
    match kind {
        Kind::Absent | Kind::File | Kind::ReadOnly | Kind::Link => Replaced,
        Kind::Dir => Left(""),
        Kind::Fifo | Kind::Device | Kind::Socket => Left(SPECIAL),
    }
}

/// A command of this name: what it makes of each kind, and how it is run with the ground and its target.
type Row<'a> = (&'a str, fn(Kind) -> Outcome, &'a dyn Fn(&Ground) -> Command);

/// Runs each command with each kind of target.
fn judge(name: &str, rows: &[Row<'_>]) {
    let mut wrong = Vec::new();
    for (command, rule, make) in rows {
        for kind in Kind::ALL {
            let Some(ground) = Ground::new(name, kind) else { continue };
            let (code, said) = ground.run(make(&ground));
            let seen = ground.see();
            let wanted = rule(kind);
            if !is_right(wanted, kind, &seen, (code, &said)) {
                let said = said.trim();
                wrong.push(format!(
                    "{command}, {kind:?}: not {wanted:?}: {seen:?}, {code:?}: {said}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn is_right(wanted: Outcome, kind: Kind, seen: &Seen, (code, said): (Option<i32>, &str)) -> bool {
    let is_done = code == Some(0);
    match wanted {
        Replaced => is_done && *seen == Seen::File { is_new: true },
        Behind => is_done && *seen == Seen::Link { is_new: true },
        Beneath => is_done && *seen == Seen::Dir { has_new: true },
        Into => is_done && *seen == Seen::Stream { has_new: true },
        Left(words) => {
            !is_done && code.is_some() && said.contains(words) && *seen == Seen::untouched(kind)
        }
        IntoOrLeft => [Into, Left("")].iter().any(|one| is_right(*one, kind, seen, (code, said))),
        Spared => {
            [Behind, Replaced, Left("")].iter().any(|one| is_right(*one, kind, seen, (code, said)))
        }
        ReplacedOrLeft => {
            [Replaced, Left("")].iter().any(|one| is_right(*one, kind, seen, (code, said)))
        }
    }
}

fn program(words: &[&str], ground: &Ground) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
    command.args(words).env("XDG_STATE_HOME", ground.at("state"));
    command
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// The path of the far side.
fn far(path: &Path) -> String {
    format!("far:{}", path.display())
}

#[test]
fn a_named_target_is_written_by_each_kind_of_copy_as_the_table_says() {
    let sshd = Sshd::with_lines("targets-named", "Subsystem sftp internal-sftp\n");
    let (source, target) = (|g: &Ground| text(&g.source()), |g: &Ground| text(&g.target()));
    let sftp = ["--remote-path", "no-such-hikyaku"];
    judge(
        "targets-named",
        &[
            ("cp here", native, &|g| program(&["cp", &source(g), &target(g)], g)),
            ("cp put", native, &|g| sshd.cp(&[&source(g), &far(&g.target())])),
            ("cp get", native, &|g| sshd.cp(&[&far(&g.source()), &target(g)])),
            ("cp put by SFTP", native, &|g| {
                let mut command = sshd.cp(&[&source(g), &far(&g.target())]);
                command.args(sftp);
                command
            }),
            ("cp get by SFTP", native, &|g| {
                let mut command = sshd.cp(&[&far(&g.source()), &target(g)]);
                command.args(sftp);
                command
            }),
        ],
    );
}

#[test]
fn a_named_target_is_written_by_the_other_commands_as_the_table_says() {
    let sshd = Sshd::with_lines("targets-others", "Subsystem sftp internal-sftp\n");
    let batch = |g: &Ground, line: String| {
        let file = g.at("batch");
        std::fs::write(&file, line).unwrap();
        sshd.sftp(&["-b", &text(&file), "far"])
    };
    judge(
        "targets-others",
        &[
            ("sftp get", by_sftp, &|g| {
                batch(g, format!("get {} {}\n", text(&g.source()), text(&g.target())))
            }),
            ("sftp put", by_sftp, &|g| {
                batch(g, format!("put {} {}\n", text(&g.source()), text(&g.target())))
            }),
            ("get", of_the_web, &|g| {
                let url = serve_name();
                program(&["get", "--force", "-o", &text(&g.target()), &url], g)
            }),
            ("cp --manifest", manifest, &|g| {
                let (source, copy) = (text(&g.source()), text(&g.at("copy")));
                program(&["cp", "-q", "--manifest", &text(&g.target()), &source, &copy], g)
            }),
        ],
    );
}

/// `cp --manifest FILE`, whose content is not that of the source.
const fn manifest(kind: Kind) -> Outcome {
    match kind {
        Kind::Dir => Left(""),
        other => native(other),
    }
}

#[test]
fn a_daemon_and_its_clients_leave_special_files_alone() {
    let client = Client::new("targets-daemon");
    let keys = client.authorized("keys", "");
    let daemon = Daemon::start_with(&client, Path::new("/"), &keys, &["--writable"]);
    let at = |path: &Path| format!("hikyaku://{}{}", daemon.address, path.display());
    let with_state = |words: &[&str]| client.command(words);
    judge(
        "targets-daemon",
        &[
            ("cp from a daemon", from_daemon, &|g| {
                with_state(&["cp", &at(&g.source()), &text(&g.target())])
            }),
            ("cp to a daemon", by_requests, &|g| {
                with_state(&["cp", &text(&g.source()), &at(&g.target())])
            }),
            ("cp -r from a daemon", in_tree, &|g| {
                with_state(&["cp", "-r", &at(&g.tree()), &text(&g.above())])
            }),
            ("cp -r to a daemon", in_tree, &|g| {
                with_state(&["cp", "-r", &text(&g.tree()), &at(&g.above())])
            }),
        ],
    );
}

#[test]
fn what_is_no_file_in_a_tree_is_left_alone() {
    let sshd = Sshd::with_lines("targets-tree", "Subsystem sftp internal-sftp\n");
    let rsh = format!("ssh -F {}", sshd.at("ssh_config").display());
    let contents = |g: &Ground| format!("{}/", g.tree().display());
    let below = |g: &Ground| format!("{}/tree/", g.above().display());
    let sync = |g: &Ground, more: &[&str], from: String, to: String| {
        let program_path = env!("CARGO_BIN_EXE_hikyaku");
        let words = [&["sync", "-aI", "-e", &rsh, "--remote-path", program_path], more].concat();
        program(&[&words[..], &[&from, &to]].concat(), g)
    };
    let sftp = ["--remote-path", "no-such-hikyaku"];
    judge(
        "targets-tree",
        &[
            ("cp -r here", in_tree, &|g| {
                program(&["cp", "-r", &text(&g.tree()), &text(&g.above())], g)
            }),
            ("cp -r get", in_tree, &|g| sshd.cp(&["-r", &far(&g.tree()), &text(&g.above())])),
            ("cp -r put", in_tree, &|g| sshd.cp(&["-r", &text(&g.tree()), &far(&g.above())])),
            ("cp -r get by SFTP", in_tree, &|g| {
                let mut command = sshd.cp(&["-r", &far(&g.tree()), &text(&g.above())]);
                command.args(sftp);
                command
            }),
            ("sync here", in_tree_of_sync, &|g| sync(g, &[], contents(g), below(g))),
            ("sync from the far side", in_tree_of_sync, &|g| {
                sync(g, &[], format!("far:{}", contents(g)), below(g))
            }),
            ("sync to the far side", in_tree_of_sync, &|g| {
                sync(g, &[], contents(g), format!("far:{}", below(g)))
            }),
        ],
    );
}

/// `sync` replaces links and, unlike rsync, no device, FIFO or socket.
const fn in_tree_of_sync(kind: Kind) -> Outcome {
    match kind {
        Kind::Fifo | Kind::Device | Kind::Socket => Left("it is left unchanged"),
        // Empty ones make room, as with rsync.
        Kind::Dir => ReplacedOrLeft,
        other => in_tree(other),
    }
}

#[test]
fn files_that_a_run_makes_have_the_modes_that_the_umask_leaves() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = crate::common::scratch("targets-umask");
    std::fs::create_dir_all(scratch.join("src/dir")).unwrap();
    std::fs::write(scratch.join("src/dir/file"), "a").unwrap();
    let mode =
        |name: &str| std::fs::metadata(scratch.join(name)).unwrap().permissions().mode() & 0o777;
    std::fs::set_permissions(scratch.join("src/dir/file"), PermissionsExt::from_mode(0o666))
        .unwrap();
    std::fs::set_permissions(scratch.join("src/dir"), PermissionsExt::from_mode(0o777)).unwrap();
    for (umask, file, dir) in [("022", 0o644, 0o755), ("002", 0o664, 0o775), ("077", 0o600, 0o700)]
    {
        let (copy, list) = (format!("copy{umask}"), format!("list{umask}"));
        let script = format!("umask {umask}; exec \"$0\" cp -q -r --manifest {list} src {copy}");
        let mut shell = Command::new("sh");
        shell.args(["-c", &script, env!("CARGO_BIN_EXE_hikyaku")]).current_dir(&scratch);
        let output = shell.env("XDG_STATE_HOME", scratch.join("state")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let modes =
            [&list, &format!("{copy}/dir/file"), &format!("{copy}/dir")].map(|name| mode(name));
        assert_eq!(modes, [file, file, dir], "umask {umask}");
    }
    std::fs::remove_dir_all(&scratch).unwrap();
}
