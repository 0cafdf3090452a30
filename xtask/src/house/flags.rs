//! Sets of ssh's flags: structs of a command line that declare several of them.

use super::Place;
use super::code::{Code, word_at};
use std::collections::BTreeSet;

/// Letters that have ssh's, scp's or sftp's meaning: port, key, jump host, configuration, option, program.
const LETTERS: &str = "PiJFoS";
/// So many of them make a set.
const LETTERS_MIN: usize = 3;

/// Every struct with a set, as its file and name.
pub(super) fn sets(all: &[Code<'_>]) -> Vec<Place> {
    let mut sets = Vec::new();
    for code in all {
        for block in code.blocks("struct ") {
            let name = word_at(&code.text, block.start + "struct ".len());
            if letters(&code.text[block.clone()], &code.whole[block]).len() >= LETTERS_MIN {
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
