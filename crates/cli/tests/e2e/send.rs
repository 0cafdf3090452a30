//! Selection of sources: patterns, lists, several sources, and special files.

use crate::common::{Sshd, listing};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs a command with this standard input.
fn run(command: &mut Command, input: &[u8]) -> (Output, String) {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(input).unwrap();
    drop(pipe);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

/// Creates files that contain their own names.
fn make(sshd: &Sshd, names: &[&str]) {
    for name in names {
        let path = sshd.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
}

/// Creates an empty directory.
fn empty(sshd: &Sshd, name: &str) -> String {
    let path = sshd.at(name);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).unwrap();
    path.display().to_string()
}

fn names(dir: &Path) -> Vec<String> {
    listing(dir).into_iter().map(|(path, _)| path.display().to_string()).collect()
}

#[test]
fn an_existing_name_takes_precedence_over_a_pattern() {
    let sshd = Sshd::start("send-names");
    make(&sshd, &["a[1].txt", "b[.txt", "c*d", "e?", "d[x]/f", "g{h", ".hidden", "plain"]);
    for name in ["a[1].txt", "b[.txt", "c*d", "e?", "g{h"] {
        let target = empty(&sshd, "got");
        let (output, said) = run(&mut sshd.cp(&[&sshd.far(name), &target]), b"");
        assert!(output.status.success(), "{name}: {said}");
        assert_eq!(fs::read_to_string(sshd.at("got").join(name)).unwrap(), name);
        let (output, said) = run(&mut sshd.cp(&[&sshd.far(name), &sshd.far("copy[")]), b"");
        assert!(output.status.success(), "{name}: {said}");
        assert_eq!(fs::read_to_string(sshd.at("copy[")).unwrap(), name);
    }
    let target = empty(&sshd, "got");
    let (output, said) = run(&mut sshd.cp(&["-r", &sshd.far("d[x]"), &target]), b"");
    assert!(output.status.success(), "{said}");
    assert_eq!(names(&sshd.at("got")), ["d[x]/f"]);
    // A pattern that matches something is used as a pattern, and a star does not match hidden
    // names.
    let target = empty(&sshd, "got");
    let (output, said) = run(&mut sshd.cp(&[&sshd.far("[ap]*"), &target]), b"");
    assert!(output.status.success(), "{said}");
    assert_eq!(names(&sshd.at("got")), ["a[1].txt", "plain"]);
    for nothing in ["none[1]", "none[", "*.none"] {
        let (output, said) = run(&mut sshd.cp(&[&sshd.far(nothing), &target]), b"");
        assert!(!output.status.success());
        assert!(said.contains(nothing) && said.contains("no such file"), "{said}");
    }
}

#[test]
fn a_list_of_sources_can_be_piped() {
    let sshd = Sshd::start("send-list");
    make(&sshd, &["s/a", "s/d/b", "s/d/c", "s/t/x/y", "s/odd\nname", "s/.hidden"]);
    let here = sshd.at("s").display().to_string();
    let lines = b"a\n./d/b\r\n\n//d//c\n";
    let zeros = b"a\0./d/b\0d/c\0odd\nname\0";
    let lists: [(&[&str], &[u8], &[&str]); 4] = [
        (&["--files-from", "-"], lines, &["a", "d/b", "d/c"]),
        (&["--files-from", "/dev/stdin"], lines, &["a", "d/b", "d/c"]),
        (&["--from0", "--files-from=-"], zeros, &["a", "d/b", "d/c", "odd\nname"]),
        (&["-r0", "--files-from", "/dev/stdin"], b"t/\0d/b", &["d/b", "t/x/y"]),
    ];
    for (flags, list, wanted) in lists {
        for get in [false, true] {
            let target = empty(&sshd, "got");
            let (from, to) = match get {
                true => (sshd.far("s"), target),
                false => (here.clone(), sshd.far("got")),
            };
            let arguments = [flags, &[from.as_str(), &to][..]].concat();
            let (output, said) = run(&mut sshd.cp(&arguments), list);
            assert!(output.status.success(), "{arguments:?}: {said}");
            assert_eq!(names(&sshd.at("got")), wanted, "{arguments:?}");
        }
        let target = empty(&sshd, "got");
        let arguments = [flags, &[here.as_str(), &target][..]].concat();
        let (output, said) = run(&mut sshd.cp(&arguments), list);
        assert!(output.status.success(), "{arguments:?}: {said}");
        assert_eq!(names(&sshd.at("got")), wanted, "{arguments:?}");
    }
    for bad in [&b""[..], b"\n\n", b"../x\n", b"a/../../x\n"] {
        let target = empty(&sshd, "got");
        let arguments = ["--files-from", "-", &here, &target];
        let (output, said) = run(&mut sshd.cp(&arguments), bad);
        assert!(!output.status.success() && names(&sshd.at("got")).is_empty(), "{said}");
    }
}

#[test]
fn a_missing_source_does_not_stop_the_others() {
    let sshd = Sshd::start("send-missing");
    make(&sshd, &["a", "b", "d/a"]);
    let at = |name: &str| sshd.at(name).display().to_string();
    let target = empty(&sshd, "got");
    let there = sshd.far("got");
    let cases = [
        vec![at("a"), at("none"), at("b"), there.clone()],
        vec![at("a"), at("none"), at("b"), target.clone()],
        vec![sshd.far("a"), sshd.far("none"), sshd.far("b"), target.clone()],
        vec![sshd.far("a"), sshd.far("none*"), sshd.far("b"), target.clone()],
        vec![at("none"), sshd.far("a"), sshd.far("b"), target.clone()],
        vec![at("a"), "broken:none".to_owned(), sshd.far("b"), target.clone()],
        vec![sshd.far("a"), sshd.far("none"), sshd.far("b"), there],
    ];
    for arguments in cases {
        empty(&sshd, "got");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (output, said) = run(&mut sshd.cp(&arguments), b"");
        assert!(!output.status.success(), "{arguments:?}: {said}");
        assert!(said.contains("none") || said.contains("broken"), "{arguments:?}: {said}");
        assert_eq!(names(&sshd.at("got")), ["a", "b"], "{arguments:?}: {said}");
    }
    let (output, said) = run(&mut sshd.cp(&[&at("a"), &at("d/a"), &sshd.far("got")]), b"");
    assert!(!output.status.success() && said.contains("just-created"), "{said}");
    assert_eq!(fs::read_to_string(sshd.at("got/a")).unwrap(), "a");
}

#[test]
fn ambiguous_or_destructive_copies_are_refused() {
    let sshd = Sshd::start("send-onto");
    make(&sshd, &["f", "g", "t/x", "t/sub/y"]);
    std::os::unix::fs::symlink("f", sshd.at("link")).unwrap();
    let at = |name: &str| sshd.at(name).display().to_string();
    let before = listing(&sshd.at("t"));
    let cases: [(&[&str], &str); 8] = [
        (&["f", "f"], "onto itself"),
        (&["f", "link"], "onto itself"),
        (&["link", "f"], "onto itself"),
        (&["f", ""], "onto itself"),
        (&["-r", "t", "t"], "into itself"),
        (&["-r", "t", "t/sub/new"], "into itself"),
        (&["-a", "t/.", "t/sub"], "into itself"),
        (&["-r", "--inplace", "t", ""], "onto itself"),
    ];
    for (words, wanted) in cases {
        let paths = words.iter().map(|word| match word.starts_with('-') {
            true => (*word).to_owned(),
            false => at(word),
        });
        let arguments: Vec<String> = paths.collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (output, said) = run(&mut sshd.cp(&arguments), b"");
        assert!(!output.status.success() && said.contains(wanted), "{words:?}: {said}");
        assert!(listing(&sshd.at("t")) == before, "{words:?}");
        assert_eq!(fs::read_to_string(sshd.at("f")).unwrap(), "f", "{words:?}");
    }
    empty(&sshd, "got");
    for arguments in
        [&[&at("f"), ""][..], &["", &sshd.far("got")], &[&at("f"), "", &sshd.far("got")]]
    {
        let (output, said) = run(&mut sshd.cp(arguments), b"");
        assert!(!output.status.success() && said.contains("empty"), "{arguments:?}: {said}");
    }
    // Other sources of the same command are copied.
    let target = empty(&sshd, "got");
    fs::hard_link(sshd.at("f"), sshd.at("got/f")).unwrap();
    let (output, said) = run(&mut sshd.cp(&[&at("f"), &at("g"), &target]), b"");
    assert!(!output.status.success() && said.contains("onto itself"), "{said}");
    assert_eq!(names(&sshd.at("got")), ["f", "g"]);
}

#[test]
fn files_of_proc_and_sys_are_copied_completely() {
    let sshd = Sshd::with_lines("send-kernel", "Subsystem sftp internal-sftp");
    let wanted = fs::read("/proc/filesystems").unwrap();
    let copy = sshd.at("copy").display().to_string();
    for (ways, from, to) in [
        (&[][..], "/proc/filesystems", &sshd.far("copy")),
        (&[], "far:/proc/filesystems", &copy),
        (&[], "/proc/filesystems", &copy),
        (&["--via", "sftp"], "far:/proc/filesystems", &copy),
        (&["--via", "sftp"], "/proc/filesystems", &sshd.far("copy")),
    ] {
        let _ = fs::remove_file(&copy);
        let (output, said) = run(&mut sshd.cp(&[ways, &[from, to]].concat()), b"");
        assert!(output.status.success(), "{from} {to}: {said}");
        assert!(fs::read(&copy).unwrap() == wanted, "{from} {to}");
    }
}
