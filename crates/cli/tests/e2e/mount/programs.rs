//! Programs of other projects in a mount, each as on a local file system. They take a minute together, so they run on demand:
//! `cargo xtask nightly --only mounts programs`.
//!
//! What is known to fail stands in a list that is checked both ways: a program that works is not to stand in it.

use super::place::{Place, can_mount, random, said};
use std::fs;
use std::process::Command;

/// A program, and a script that fails where a local file system would not. It runs in an empty directory of the mount; `$TREE`
/// is a directory with files elsewhere.
struct Case {
    name: &'static str,
    needs: &'static [&'static str],
    script: &'static str,
}

/// Cases that fail, with the reason.
const FAIL: &[(&str, &str)] = &[("hard links", "a mount has none")];

const CASES: &[Case] = &[
    Case {
        name: "git",
        needs: &["git"],
        script: "git init -q . && cp -r $TREE/. . && git add . && git -c user.name=a -c user.email=b commit -qm one \
                 && test -z \"$(git status --porcelain)\" && git gc -q && echo x > 1 && git stash -q && git fsck && \
                 git clone -q . ../clone-$$ && diff -r --exclude=.git . ../clone-$$",
    },
    Case {
        name: "sqlite, rollback journal",
        needs: &["python3"],
        script: "python3 -c \"import sqlite3\nb = sqlite3.connect('b')\nb.execute('CREATE TABLE t (n)')\nfor n in range(50):\n \
                 b.execute('INSERT INTO t VALUES (?)', (n,)); b.commit()\nassert b.execute('PRAGMA integrity_check').fetchone()[0] == 'ok'\"",
    },
    Case {
        name: "sqlite, WAL",
        needs: &["python3"],
        script: "python3 -c \"import sqlite3\nb = sqlite3.connect('b')\nassert b.execute('PRAGMA journal_mode=WAL').fetchone()[0] == 'wal'\n\
                 b.execute('CREATE TABLE t (n)')\nb.execute('INSERT INTO t VALUES (1)'); b.commit(); b.close()\n\
                 assert sqlite3.connect('b').execute('SELECT n FROM t').fetchone()[0] == 1\"",
    },
    Case {
        name: "rsync",
        needs: &["rsync"],
        script: "rsync -a $TREE/ out && diff -r $TREE out && test -z \"$(rsync -ai $TREE/ out)\" && echo y > out/2 && \
                 rsync -a --inplace $TREE/ out && diff -r $TREE out && rsync -a --delete --exclude=1 $TREE/ out",
    },
    Case {
        name: "vim",
        needs: &["vim"],
        script: "echo one > a && chmod 640 a && vim -u NONE -es -c 'normal otwo' -c wq a && test \"$(cat a)\" = \"one\ntwo\" && \
                 test $(stat -c %a a) = 640",
    },
    Case {
        name: "tar",
        needs: &["tar"],
        script: "tar -C $TREE -cf t.tar . && mkdir out && tar -C out -xf t.tar && diff -r $TREE out && \
                 tar -C out -df t.tar",
    },
    Case {
        name: "cp, mv, dd, truncate, install",
        needs: &["dd"],
        script: "cp -a $TREE a && cp -r --reflink=auto a b && mv a/1 b/moved && dd if=b/2 of=c bs=1k conv=notrunc,fsync status=none && \
                 cmp c b/2 && truncate -s 100000 c && test $(stat -c %s c) = 100000 && install -m 700 c d && sed -i s/x/y/ d",
    },
    Case {
        name: "h5py",
        needs: &["h5py"],
        script: "python3 -c \"import h5py\nf = h5py.File('f', 'w'); f['x'] = list(range(100000)); f.close()\n\
                 f = h5py.File('f', 'a'); f['x'][5] = 7; f.close()\nassert sum(h5py.File('f')['x'][:]) == 4999950002\"",
    },
    Case { name: "hard links", needs: &["ln"], script: "echo x > a && ln a b" },
];

#[test]
#[ignore = "takes a minute: other projects' programs"]
fn programs_of_other_projects_work() {
    if !can_mount() {
        return;
    }
    for options in [&["--writable"][..], &["--writable", "--leases"]] {
        let place = Place::with("mount-others", options);
        for n in 0..30 {
            fs::create_dir_all(place.at(&format!("tree/{}", n % 3 + 100))).unwrap();
            fs::write(place.at(&format!("tree/{n}")), random(n, 999 * n as usize)).unwrap();
            fs::write(place.at(&format!("tree/{}/{n}", n % 3 + 100)), "x").unwrap();
        }
        place.mount(&[]);
        let mut wrong = Vec::new();
        for (number, case) in CASES.iter().enumerate() {
            if let Some(missing) = case.needs.iter().find(|name| !has(name)) {
                eprintln!("\n*** {} SKIPPED, because there is no {missing} ***\n", case.name);
                continue;
            }
            let dir = place.mnt(&format!("{number}"));
            fs::create_dir(&dir).unwrap();
            let mut command = Command::new("sh");
            command.args(["-c", case.script]).current_dir(&dir).env("TREE", place.at("tree"));
            let output = command.output().unwrap();
            let is_known = FAIL.iter().any(|(name, _)| *name == case.name);
            if output.status.success() == is_known {
                wrong.push(format!("{} ({options:?}): {}", case.name, said(&output)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

fn has(name: &str) -> bool {
    let mut command = match name {
        "h5py" => Command::new("python3"),
        _ => Command::new("sh"),
    };
    match name {
        "h5py" => command.args(["-c", "import h5py"]),
        _ => command.args(["-c", &format!("command -v {name}")]),
    };
    command.output().is_ok_and(|output| output.status.success())
}
