//! Sets of ssh's flags: structs of a command line that declare several of them.

use super::Place;
use super::code::{Code, word_at};
use std::collections::BTreeSet;

/// Letters that have ssh's, scp's or sftp's meaning: port, key, jump host, configuration, option, program.
const LETTERS: &str = "PiJFoS";
/// Fields of the same meanings, which have long names only.
const FIELDS: [&str; 6] =
    ["ssh_port:", "identity:", "jump:", "ssh_config:", "ssh_option:", "ssh_program:"];
/// So many letters or fields make a set.
const SET_MIN: usize = 3;

/// Every struct with a set, as its file and name.
pub(super) fn sets(all: &[Code<'_>]) -> Vec<Place> {
    let mut sets = Vec::new();
    for code in all {
        for block in code.blocks("struct ") {
            let name = word_at(&code.text, block.start + "struct ".len());
            let text = &code.text[block.clone()];
            let fields = FIELDS.iter().filter(|field| text.contains(*field)).count();
            let is_set = letters(text, &code.whole[block]).len().max(fields) >= SET_MIN;
            if is_set && text.contains("#[arg(") {
                sets.push(Place { name: name.to_owned(), files: vec![code.path.to_owned()] });
            }
        }
    }
    sets
}

/// Which of the letters the attributes of a struct declare. `code` and `whole` are the same bytes, `code` without literals.
fn letters<'a>(code: &str, whole: &'a str) -> BTreeSet<&'a str> {
    let declared = code.match_indices("short").filter_map(|(at, word)| {
        let rest = &code[at + word.len()..];
        let of_field = || {
            // `short` alone stands for the first letter of the field.
            let attribute_end = at + code[at..].find(")]")? + ")]".len();
            let field = code[attribute_end..].find(':')? + attribute_end;
            let line = code[..field].rfind(['\n', ' '])? + 1;
            whole.get(line..=line)
        };
        match rest.trim_start().strip_prefix('=') {
            Some(value) => {
                let letter = code.len() - value.trim_start().len() + 1;
                whole.get(letter..=letter)
            }
            None if rest.starts_with([',', ')']) => of_field(),
            None => None,
        }
    });
    declared.filter(|letter| LETTERS.contains(letter)).collect()
}
