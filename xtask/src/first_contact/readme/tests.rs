//! What is taken from a README, and which one is refused.

use super::*;

const README: &str = "# hikyaku
```sh
hikyaku cp elsewhere
```
## Install
```sh
sudo apt-get install git rustc-web   # requirements
git clone https://forge.example/h hikyaku && cd hikyaku
cargo xtask install                  # 12 minutes
cargo xtask demo
```
```text
installed
```
## First copy
```sh
# as scp
hikyaku cp -r run7/ user@host:data/
hikyaku doctor user@host
```
";

#[test]
fn the_commands_are_those_from_the_clone_to_the_first_copy() {
    let commands = Commands::of(README).unwrap();
    assert_eq!(commands.packages().collect::<Vec<_>>(), ["git", "rustc-web"]);
    assert_eq!(commands.address, "https://forge.example/h");
    let steps = [
        "git clone https://forge.example/h hikyaku && cd hikyaku",
        "cargo xtask install",
        "hikyaku cp -r run7/ user@host:data/",
    ];
    assert_eq!(commands.steps, steps);
}

#[test]
fn a_readme_without_one_of_them_is_refused() {
    for line in ["sudo apt-get install", "git clone", "hikyaku cp -r"] {
        assert!(Commands::of(&README.replace(line, "other")).is_err(), "{line}");
    }
}
