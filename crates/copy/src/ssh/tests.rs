//! What `ssh` is told.

use super::*;

fn remote() -> Remote {
    Remote { user: None, host: "host".into(), port: None, path: b"/data".to_vec() }
}

fn words(options: &SshOptions, remote: &Remote) -> Vec<String> {
    let words = options.command(remote, None).unwrap();
    words.into_iter().map(|word| word.into_string().unwrap()).collect()
}

#[test]
fn scps_flags_reach_ssh_before_ours() {
    let options = SshOptions {
        family: Some(Family::V6),
        batch: true,
        verbose: 2,
        identities: vec!["key".into()],
        jump: Some("gate".into()),
        options: vec!["ForwardAgent=yes".into()],
        port: Some(2222),
        ..SshOptions::default()
    };
    let words = words(&options, &Remote { user: Some("me".into()), ..remote() });
    let line = words.join(" ");
    assert!(line.starts_with("ssh -6 -oBatchMode=yes -v -v -J gate -i key -o ForwardAgent=yes -x"));
    assert!(line.contains(" -p 2222 -l me -- host exec sh -c '"), "{line}");
    let theirs = line.find("ForwardAgent=yes").unwrap();
    assert!(theirs < line.find("ForwardAgent=no").unwrap(), "the first wins");
}

#[test]
fn the_hosts_own_port_goes_before_the_flag() {
    let options = SshOptions { port: Some(22), ..SshOptions::default() };
    let words = words(&options, &Remote { port: Some(2022), ..remote() });
    assert!(words.join(" ").contains("-p 2022"));
}

#[test]
fn the_path_of_files_is_not_on_the_command_line() {
    let words = words(&SshOptions::default(), &remote());
    assert!(words.iter().all(|word| !word.contains("/data")));
    assert_eq!(words.last().unwrap().matches('\'').count(), 2, "one quoted word");
}

#[test]
fn no_path_of_the_far_side_says_anything_to_a_shell() {
    let options = SshOptions::default();
    for hostile in ["", "a b", "$(x)", "a;b", "'", "`x`", "-x", "a\nb", "a|b", "ü"] {
        assert!(options.command(&remote(), Some(hostile)).is_err(), "{hostile}");
    }
    for good in ["hikyaku", "/opt/hikyaku-1.0/bin/hikyaku", "~/bin/hikyaku"] {
        let words = options.command(&remote(), Some(good)).unwrap();
        assert!(words.last().unwrap().to_str().unwrap().contains(good));
    }
}
