//! README.ja.md is a translation of README.md, section by section.
//!
//! Both have the same headings' levels, and in each section the same numbers in rows of tables, targets of links, and
//! lines of code without their comments. A Japanese section ends with a mark, `<!-- en:HASH8 -->`: the hash of the words
//! of the English section that it translates. `cargo xtask tidy --translated` writes the marks.

use super::markdown::{self, Line, LineKind};
use super::{Finding, TextFile};

#[cfg(test)]
mod tests;

pub(super) const ORIGINAL: &str = "README.md";
pub(super) const TRANSLATION: &str = "README.ja.md";
const MARK: (&str, &str) = ("<!-- en:", " -->");

/// A heading and what follows it up to the next one.
struct Section<'a> {
    /// The line of the heading, from 1.
    line: usize,
    level: usize,
    title: &'a str,
    lines: Vec<Line<'a>>,
}

/// The translation has all that the original has, and is one of its words of today.
pub(super) fn check(original: &TextFile, translation: &TextFile) -> Vec<Finding> {
    let (english, japanese) = (sections(&original.text), sections(&translation.text));
    let mut findings = differences(&english, &japanese);
    for (english, japanese) in english.iter().zip(&japanese) {
        if japanese.mark() != Some(english.hash().as_str()) {
            let text = format!(
                "section '{}' is a translation of an older text: translate, then cargo xtask tidy --translated",
                english.title
            );
            findings.push(Finding::error(TRANSLATION, japanese.line, text));
        }
    }
    findings
}

/// The translation with the marks of the original's sections of today; or where the two differ.
pub(super) fn marked(original: &str, translation: &str) -> Result<String, Vec<Finding>> {
    let (english, japanese) = (sections(original), sections(translation));
    let differences = differences(&english, &japanese);
    if !differences.is_empty() {
        return Err(differences);
    }
    let mut text = String::new();
    for (english, japanese) in english.iter().zip(&japanese) {
        let own = japanese.lines.iter().filter(|line| mark_in(line.text).is_none());
        let own: Vec<&str> = own.map(|line| line.text).collect();
        text.push_str(own.join("\n").trim_end());
        text.push_str(&format!("\n\n{}{}{}\n\n", MARK.0, english.hash(), MARK.1));
    }
    Ok(text.trim_end().to_owned() + "\n")
}

fn differences(english: &[Section<'_>], japanese: &[Section<'_>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, english) in english.iter().enumerate() {
        let Some(japanese) = japanese.get(index).filter(|other| other.level == english.level)
        else {
            let text = format!("lacks section '{}' of level {}", english.title, english.level);
            let line = japanese.get(index).map_or(1, |section| section.line);
            return vec![Finding::error(TRANSLATION, line, text)];
        };
        for (what, of_english, of_japanese) in [
            ("numbers in tables", english.rows(), japanese.rows()),
            ("targets of links", english.links(), japanese.links()),
            ("lines of code", english.code(), japanese.code()),
        ] {
            let only = |own: &[String], other: &[String], language| {
                let one = own.iter().find(|one| !other.contains(one))?;
                Some(format!("'{one}' in {language} only"))
            };
            if of_english != of_japanese {
                let differences = [
                    only(&of_english, &of_japanese, "English"),
                    only(&of_japanese, &of_english, "Japanese"),
                ];
                let differences: Vec<String> = differences.into_iter().flatten().collect();
                let differences = match differences.is_empty() {
                    true => "another order or number".to_owned(),
                    false => differences.join(", "),
                };
                let text = format!("section '{}' has other {what}: {differences}", english.title);
                findings.push(Finding::error(TRANSLATION, japanese.line, text));
            }
        }
    }
    if let Some(more) = japanese.get(english.len()) {
        let text = format!("has a section '{}' that English lacks", more.title);
        findings.push(Finding::error(TRANSLATION, more.line, text));
    }
    findings
}

/// The sections of a text. What stands before the first heading belongs to none.
fn sections(text: &str) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in markdown::lines(text) {
        if let Some((level, title)) = markdown::heading(&line) {
            sections.push(Section { line: line.number, level, title, lines: Vec::new() });
        }
        if let Some(section) = sections.last_mut() {
            section.lines.push(line);
        }
    }
    sections
}

impl Section<'_> {
    /// The hash of the words: other breaks of lines are the same text.
    fn hash(&self) -> String {
        let mut crc = flate2::Crc::new();
        for word in self.lines.iter().flat_map(|line| line.text.split_whitespace()) {
            crc.update(word.as_bytes());
            crc.update(b" ");
        }
        format!("{:08x}", crc.sum())
    }

    fn mark(&self) -> Option<&str> {
        let last = self.lines.iter().rev().find(|line| !line.text.trim().is_empty())?;
        mark_in(last.text)
    }

    /// The numbers of each row of a table, in ascending order: words around them have another order.
    fn rows(&self) -> Vec<String> {
        let text = self.lines.iter().filter(|line| line.kind == LineKind::Text);
        let rows = text.map(|line| line.text.trim()).filter(|line| line.starts_with('|'));
        rows.map(|row| {
            let plain = markdown::without_inline_code(row);
            let numbers = plain.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
            let mut numbers: Vec<&str> =
                numbers.map(|number| number.trim_matches('.')).filter(|n| !n.is_empty()).collect();
            numbers.sort_unstable();
            format!("| {} |", numbers.join(" "))
        })
        .collect()
    }

    /// The targets of links in alphabetical order, those to the other language left out.
    fn links(&self) -> Vec<String> {
        let text: Vec<&str> = self.lines.iter().map(|line| line.text).collect();
        let targets = markdown::link_targets(&text.join("\n"));
        let mut targets: Vec<String> = targets
            .into_iter()
            .map(|target| target.text)
            .filter(|target| ![ORIGINAL, TRANSLATION].contains(&target.as_str()))
            .collect();
        targets.sort();
        targets
    }

    /// Lines of code blocks without comments.
    fn code(&self) -> Vec<String> {
        let code = self.lines.iter().filter(|line| line.kind == LineKind::Code);
        let without = |line: &str| {
            let padded = format!(" {line}");
            let ends = [" # ", " // "].map(|comment| padded.find(comment).unwrap_or(padded.len()));
            let words: Vec<&str> = padded[..ends[0].min(ends[1])].split_whitespace().collect();
            words.join(" ")
        };
        code.map(|line| without(line.text)).filter(|line| !line.is_empty()).collect()
    }
}

fn mark_in(line: &str) -> Option<&str> {
    line.trim().strip_prefix(MARK.0)?.strip_suffix(MARK.1)
}
