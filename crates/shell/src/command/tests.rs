//! Tests of commands.

use super::*;

fn read(text: &str) -> Result<Command, String> {
    Command::parse(text.as_bytes()).map_err(|NoCommand(text)| text)
}

fn bytes(text: &str) -> Vec<u8> {
    text.as_bytes().to_vec()
}

#[test]
fn every_name_is_a_command() {
    for name in Command::NAMES {
        let done = read(&format!("{name} 7 b"));
        assert!(done.is_ok(), "{name}: {done:?}");
        assert!(read(&format!("{} 7 b", name.to_uppercase())).is_ok(), "{name}");
    }
    for text in ["jaja", "lsx", "get\u{fe}f"] {
        assert_eq!(read(text), Err("Invalid command.".to_owned()), "{text}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let cases = [
        ("get", "You must specify at least one path after a get command."),
        ("reput -p", "You must specify at least one path after a reput command."),
        ("rename a", "You must specify two paths after a rename command."),
        ("ln -s a", "You must specify two paths after a ln command."),
        ("mkdir", "You must specify a path after a mkdir command."),
        ("rm", "You must specify a path after a rm command."),
        ("chmod 644", "You must specify a path after a chmod command."),
        ("chmod 888 a", "You must supply a numeric argument to the chmod command."),
        ("chown anna a", "You must supply a numeric argument to the chown command."),
        ("chgrp -1 a", "chgrp: Invalid flag -1"),
        ("lumask", "You must supply a numeric argument to the lumask command."),
        ("get -x a", "get: Invalid flag -x"),
        ("pwd -l", "pwd: Invalid flag -l"),
        ("get \"a", "Unterminated quoted argument"),
    ];
    for (text, wanted) in cases {
        assert_eq!(read(text), Err(wanted.to_owned()), "{text}");
    }
}

#[test]
fn flags_of_transfers_have_both_cases() {
    let Ok(Command::Get(plain)) = read("get a*") else { panic!("not a get") };
    assert_eq!(plain, Transfer { from: bytes("a*"), to: None, how: How::default() });
    let all = How {
        attributes: Attributes::Kept,
        depth: Depth::Tree,
        begin: Begin::Resumed,
        until: Until::Synced,
    };
    for text in ["put -afpr a b", "put -a -f -P -R a b", "reput -Pfr a b"] {
        let Ok(Command::Put(transfer)) = read(text) else { panic!("not a put") };
        assert_eq!(transfer, Transfer { from: bytes("a"), to: Some(bytes("b")), how: all });
    }
    assert_eq!(all.or(How::default()), all);
    assert_eq!(How::default().or(all), all);
    // Flags end at the first other word, and at two dashes.
    let Ok(Command::Get(odd)) = read("get -- -p -r") else { panic!("not a get") };
    assert_eq!((odd.from, odd.to), (bytes("-p"), Some(bytes("-r"))));
}

#[test]
fn a_pattern_is_kept_where_one_is_allowed() {
    assert_eq!(read(r"rm \*a*"), Ok(Command::Remove(bytes(r"\*a*"))));
    assert_eq!(read(r"mkdir \*a*"), Ok(Command::MakeDir(bytes("*a*"))));
    let paths = [bytes("a["), bytes("b c")];
    assert_eq!(read(r#"rename a\[ "b c""#), Ok(Command::Rename(RenameKind::Replacing, paths)));
}

#[test]
fn the_shell_gets_the_line_as_it_is() {
    assert_eq!(read(r#"!echo "a  b"  'c'"#), Ok(Command::Shell(bytes(r#"echo "a  b"  'c'"#))));
    assert_eq!(read("!"), Ok(Command::Shell(Vec::new())));
    assert_eq!(read("lls  -l \"a b\""), Ok(Command::LocalList(bytes("-l \"a b\""))));
}

#[test]
fn the_last_form_of_a_list_counts() {
    let form = |text: &str| match read(text) {
        Ok(Command::List { style, .. }) => style,
        other => panic!("{other:?}"),
    };
    let long = |owners, sizes| Form::Long(Long { owners, sizes });
    assert_eq!(form("ls -lh").form, long(Owners::Named, Sizes::Scaled));
    assert_eq!(form("ls -hn").form, long(Owners::Numbered, Sizes::Scaled));
    assert_eq!(form("ls -h").form, Form::Columns);
    assert_eq!(form("ls -1a").form, Form::Single);
    assert_eq!(form("ls -rtS").order, Order::Size);
    assert_eq!(form("dir -lt a").order, Order::Time);
}
