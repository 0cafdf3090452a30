//! No ids of lists that the tree does not contain: a reader could not look them up.

use super::{Finding, TextFile};

/// Letters of a row in a list of requirements: `P`, three or four capitals, a number.
const CAPITALS: std::ops::RangeInclusive<usize> = 3..=4;

/// No file names a row of a private list, and no page for users a bench by its old number.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let in_file = |file: &TextFile| {
        let rows = file.text.lines().enumerate();
        let is_page = is_page_for_users(&file.path);
        let found = rows.filter_map(|(index, line)| {
            let text = match (private_id(line), old_bench(line).filter(|_| is_page)) {
                (Some(id), _) => {
                    format!("names {id}, an id of a private list: name the subject")
                }
                (None, Some(id)) => format!("names the bench {id}: cargo xtask bench --list"),
                (None, None) => return None,
            };
            Some(Finding::error(&file.path, index + 1, text))
        });
        found.collect::<Vec<_>>()
    };
    files.iter().flat_map(in_file).collect()
}

fn is_page_for_users(path: &str) -> bool {
    let is_document = path.starts_with("docs/") && !path.starts_with("docs/internals/");
    path.ends_with(".md") && (is_document || path.starts_with("README"))
}

/// The old number of a bench in parentheses, such as `(c1)`: a letter and a digit.
fn old_bench(line: &str) -> Option<&str> {
    let in_parentheses = line.split('(').skip(1).filter_map(|rest| rest.split(')').next());
    in_parentheses.into_iter().find(|text| {
        let mut letters = text.chars();
        let (letter, digit) = (letters.next(), letters.next());
        letter.is_some_and(|letter| "acdps".contains(letter))
            && digit.is_some_and(|digit| digit.is_ascii_digit())
            && letters.all(|digit| digit.is_ascii_digit())
    })
}

fn private_id(line: &str) -> Option<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    line.split(|letter| !is_part(letter)).find(|word| {
        let Some(rest) = word.strip_prefix("P-") else { return false };
        let Some((capitals, number)) = rest.split_once('-') else { return false };
        CAPITALS.contains(&capitals.len())
            && capitals.chars().all(|letter| letter.is_ascii_uppercase())
            && number.starts_with(|digit: char| digit.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_seen() {
        for (list, seen) in
            [("UDT", true), ("HPFP", true), ("UD", false), ("Udt", false), ("HPFPX", false)]
        {
            let text = format!("a\nb (P-{list}-2).\n");
            let file = TextFile { path: "a.rs".to_owned(), text };
            assert_eq!(check(&[file]).len(), usize::from(seen), "{list}");
        }
    }

    #[test]
    fn pages_for_users_name_benches_by_their_names() {
        let findings = |path: &str, text: &str| {
            check(&[TextFile { path: path.to_owned(), text: text.to_owned() }]).len()
        };
        for (text, seen) in [("13 s (c1)", 1), ("ls(1), d1, (c1x), (s)", 0), ("a (b) (p12)", 1)] {
            assert_eq!(findings("docs/compare.md", text), seen, "{text}");
            assert_eq!(findings("docs/internals/cpu.md", text), 0, "{text}");
        }
    }
}
