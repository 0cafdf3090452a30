//! The words for errors of the system: those of the C library, beginning with a small letter and without the error's
//! number, to follow the name of a file or host and a colon.

use std::io;

/// The text of the standard library before the resolver's words for a name that has no address.
const LOOKUP: &str = "failed to lookup address information: ";
/// The text of the standard library before an error's number.
const NUMBER: &str = " (os error ";

/// Why the resolver returned no address for a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unresolved {
    /// No host has this name.
    Unknown,
    /// No name server answered, so the name may exist.
    NoAnswer,
}

impl Unresolved {
    /// Why `error` has no address, if it is an error of the resolver. Such an error has neither a number nor a kind, only a
    /// text.
    pub fn of(error: &io::Error) -> Option<Self> {
        match error.raw_os_error() {
            Some(_) => None,
            None => error.to_string().strip_prefix(LOOKUP).map(Self::of_resolver),
        }
    }

    /// The words for errors of the C library: those of glibc and of musl for `EAI_AGAIN` mean that no server answered.
    fn of_resolver(text: &str) -> Self {
        let no_answer = ["Temporary failure", "Try again"];
        match no_answer.iter().any(|start| text.starts_with(start)) {
            true => Self::NoAnswer,
            false => Self::Unknown,
        }
    }

    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Unknown => "name not known",
            Self::NoAnswer => "no name server answers",
        }
    }
}

/// The words for an error of the system, also if the standard library or another crate made it.
pub fn words(error: &io::Error) -> String {
    match (error.raw_os_error(), Unresolved::of(error)) {
        (Some(number), _) => of_number(number),
        (None, Some(unresolved)) => unresolved.words().to_owned(),
        (None, None) => reworded(&error.to_string()),
    }
}

/// A text in which errors of the system stand as the standard library prints them, with the words of [`words`] in their
/// place.
pub fn reworded(text: &str) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(LOOKUP) {
        let end = after.find(": ").unwrap_or(after.len());
        whole.push_str(before);
        whole.push_str(Unresolved::of_resolver(&after[..end]).words());
        rest = &after[end..];
    }
    whole.push_str(rest);
    without_numbers(&whole)
}

/// The words for errors with a number.
fn without_numbers(text: &str) -> String {
    let mut parts = text.split(NUMBER);
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let number =
            part.split_once(')').and_then(|(number, rest)| Some((number.parse().ok()?, rest)));
        let Some((number, rest)) = number else {
            whole.extend([NUMBER, part]);
            continue;
        };
        let its = standard(number);
        if let Some(before) = whole.strip_suffix(&its) {
            whole = format!("{before}{}", of_number(number));
        }
        whole.push_str(rest);
    }
    whole
}

fn of_number(number: i32) -> String {
    let text = standard(number);
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

/// The C library's words.
fn standard(number: i32) -> String {
    let text = io::Error::from_raw_os_error(number).to_string();
    text.split(NUMBER).next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_the_system_has_neither_a_number_nor_a_capital_letter() {
        let denied = || io::Error::from_raw_os_error(13);
        assert_eq!(words(&denied()), "permission denied");
        assert_eq!(words(&io::Error::other(format!("f1: {}", denied()))), "f1: permission denied");
        let two = format!("cannot read x: {}: as well as y: {}", denied(), denied());
        assert_eq!(
            reworded(&two),
            "cannot read x: permission denied: as well as y: permission denied"
        );
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in
            ["", "x", "x (os error y) z (os error ", "Permission denied", "failed to lookup"]
        {
            assert_eq!(reworded(text), text);
        }
        assert_eq!(reworded("odd words (os error 13)"), "odd words");
    }

    #[test]
    fn a_name_is_not_known_or_no_server_answers() {
        let cases = [
            ("Name or service not known", Unresolved::Unknown),
            ("Name does not resolve", Unresolved::Unknown),
            ("No address associated with hostname", Unresolved::Unknown),
            ("Temporary failure in name resolution", Unresolved::NoAnswer),
            ("Try again", Unresolved::NoAnswer),
        ];
        for (text, unresolved) in cases {
            let error = io::Error::other(format!("{LOOKUP}{text}"));
            assert_eq!(Unresolved::of(&error), Some(unresolved), "{text}");
            assert_eq!(words(&error), unresolved.words());
            assert_eq!(
                reworded(&format!("h: {error}: x")),
                format!("h: {}: x", unresolved.words())
            );
        }
        assert_eq!(Unresolved::of(&io::Error::from_raw_os_error(2)), None);
        assert_eq!(Unresolved::of(&io::Error::other("lookup")), None);
    }
}
