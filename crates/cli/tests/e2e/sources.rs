//! Sources of one name on several hosts: the first is copied, the others are reported as failures.

use crate::common::{Sshd, random};
use std::fs;
use std::process::Output;

/// Creates sources on three hosts: two aliases of the far side, and this one. `small` and `large`
/// exist on all of them.
fn begin(name: &str) -> Sshd {
    let sshd = Sshd::start(name);
    for (number, machine) in ["here", "x", "y"].iter().enumerate() {
        let dir = sshd.at(machine).join("d");
        fs::create_dir_all(&dir).unwrap();
        for folder in [&dir, &sshd.at(machine)] {
            fs::write(folder.join("small"), random(number as u64, 1000)).unwrap();
            fs::write(folder.join("large"), random(number as u64, 700_000)).unwrap();
        }
        fs::write(dir.join(format!("of-{machine}")), machine).unwrap();
    }
    sshd
}

/// The host from which a file in the target comes.
fn origin(sshd: &Sshd, target: &str, name: &str) -> Option<u64> {
    let bytes = fs::read(sshd.at(target).join(name)).unwrap();
    (0..3).find(|seed| random(*seed, bytes.len()) == bytes)
}

fn copy(sshd: &Sshd, words: &[String]) -> (Option<i32>, String) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let Output { status, stderr, .. } = sshd.cp(&words).output().unwrap();
    (status.code(), String::from_utf8(stderr).unwrap())
}

#[test]
fn the_first_of_several_sources_with_one_name_is_copied_and_the_others_fail() {
    let sshd = begin("sources-hosts");
    let here = |name: &str| sshd.at("here").join(name).display().to_string();
    let x = |name: &str| sshd.far(&format!("x/{name}"));
    let y = |name: &str| sshd.far(&format!("y/{name}")).replace("far:", "other:");
    let far_target = |name: &str| sshd.far(name).replace("far:", "other:");
    let near_target = |name: &str| sshd.at(name).display().to_string();
    for name in ["small", "large"] {
        let cases = [
            ("get-get", vec![x(name), y(name), near_target("get-get")], 1, "other:"),
            ("here-get", vec![here(name), x(name), near_target("here-get")], 0, "far:"),
            ("get-here", vec![x(name), here(name), near_target("get-here")], 1, "here/"),
            ("put-through", vec![here(name), x(name), far_target("put-through")], 0, "far:"),
            ("through-put", vec![x(name), here(name), far_target("through-put")], 1, "here/"),
            ("pattern", vec![x("sm*"), x("la*"), y(name), near_target("pattern")], 1, "other:"),
        ];
        for (target, words, first, refused) in cases {
            fs::create_dir_all(sshd.at(target)).unwrap();
            let (code, said) = copy(&sshd, &words);
            assert_eq!(code, Some(6), "{target} {name}: {said}");
            assert!(
                said.contains("would overwrite the just-created one"),
                "{target} {name}: {said}"
            );
            assert!(said.contains(refused) && said.contains(name), "{target} {name}: {said}");
            assert_eq!(origin(&sshd, target, name), Some(first), "{target} {name}");
        }
    }
}

#[test]
fn directories_of_several_hosts_are_merged_and_no_file_is_replaced() {
    let sshd = begin("sources-trees");
    let here = sshd.at("here/d").display().to_string();
    let (x, y) = (sshd.far("x/d"), sshd.far("y/d").replace("far:", "other:"));
    for (target, to) in
        [("near", sshd.at("near").display().to_string()), ("remote", sshd.far("remote"))]
    {
        fs::create_dir_all(sshd.at(target)).unwrap();
        let words = ["-r", &x, &here, &y, &to].map(str::to_owned);
        let (code, said) = copy(&sshd, &words);
        assert_eq!(code, Some(6), "{said}");
        assert_eq!(said.matches("would overwrite the just-created one").count(), 4, "{said}");
        for name in ["d/small", "d/large"] {
            assert_eq!(origin(&sshd, target, name), Some(1), "{target} {name}");
        }
        for machine in ["here", "x", "y"] {
            let path = sshd.at(target).join(format!("d/of-{machine}"));
            assert_eq!(fs::read_to_string(path).unwrap(), machine, "{target}");
        }
        // Without a name conflict the same copy succeeds.
        fs::remove_dir_all(sshd.at(target)).unwrap();
        fs::create_dir_all(sshd.at(target)).unwrap();
        let excluded = ["--exclude", "small", "--exclude", "large"].map(str::to_owned);
        let (code, said) = copy(&sshd, &[&excluded[..], &words[..]].concat());
        assert_eq!((code, said.as_str()), (Some(0), ""), "{target}");
    }
}
