//! `hikyaku sftp` in batches: with hikyaku at the far side, and by ssh's subsystem.

use super::{Begin, Ground, Records};
use crate::common::Sshd;
use std::fs;

/// Batches: a name, the state at the beginning, and lines. `$FROM` and `$TO` are directories.
const BATCHES: [(&str, Begin, &str); 11] = [
    ("get", Begin::New, "get $FROM/f $TO/f"),
    ("get", Begin::Again, "get $FROM/f $TO/f"),
    ("get", Begin::Taken, "get $FROM/f $TO/f"),
    ("get of a tree with -p", Begin::New, "get -rp $FROM/t $TO"),
    ("get of a missing file", Begin::New, "get $FROM/nosuch $TO\nget $FROM/f $TO"),
    ("reget", Begin::Again, "reget $FROM/f $TO/f"),
    ("put", Begin::New, "put $FROM/f $TO/f"),
    ("put", Begin::Again, "put $FROM/f $TO/f"),
    ("put of a tree with -p", Begin::New, "put -rp $FROM/t $TO"),
    ("put of a missing file", Begin::New, "-put $FROM/nosuch $TO\nput $FROM/f $TO"),
    (
        "ls, mkdir, rename and rm",
        Begin::Taken,
        "ls -1 $FROM\nmkdir $TO/d\nrename $TO/f $TO/d/g\nrm $TO/d/g/own",
    ),
];

#[test]
fn sftp_does_what_is_recorded() {
    let sshd = Sshd::with_lines("recorded-sftp", "Subsystem sftp internal-sftp\n");
    let mut ground = Ground::new("recorded-sftp-ends");
    ground.name(sshd.at("").display(), "$SSHD/");
    let mut records = Records::new();
    for (way, name) in [("native", "ssh"), ("sftp", "sftp")] {
        for (title, begin, lines) in BATCHES {
            let lines = lines.replace("$FROM", &ground.path("from"));
            let lines = lines.replace("$TO", &ground.path("to"));
            fs::write(ground.at("batch"), format!("{lines}\n")).unwrap();
            let title = format!("sftp by {name}, {title}");
            let command = || {
                let mut command = sshd.sftp(&["--via", way, "-b", &ground.path("batch"), "far"]);
                command.current_dir(ground.at("")).env("HOME", ground.at("home"));
                command.env("XDG_CONFIG_HOME", ground.at("config"));
                command
            };
            records.add(&ground, &title, begin, &command);
        }
    }
    records.check("sftp");
}
