//! No ids of lists that the tree does not contain: a reader could not look them up.

use super::{Finding, TextFile};

/// Letters of a row in a list of requirements: `P`, three or four capitals, a number.
const CAPITALS: std::ops::RangeInclusive<usize> = 3..=4;

/// No file names a row of a private list.
pub(super) fn check(files: &[TextFile]) -> Vec<Finding> {
    let in_file = |file: &TextFile| {
        let rows = file.text.lines().enumerate();
        let found = rows.filter_map(|(index, line)| {
            let id = private_id(line)?;
            let text = format!("names {id}, an id of a private list: name the subject");
            Some(Finding::error(&file.path, index + 1, text))
        });
        found.collect::<Vec<_>>()
    };
    files.iter().flat_map(in_file).collect()
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
}
