//! The parts of a Markdown text that rules compare: lines in and outside of code blocks, headings, links, inline code.
//!
//! Not a parser of CommonMark: it knows the forms that the documents of this tree use.

#[cfg(test)]
mod tests;

/// One line of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Line<'a> {
    /// From 1.
    pub(super) number: usize,
    pub(super) text: &'a str,
    pub(super) kind: LineKind,
}

/// Where a line stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LineKind {
    Text,
    /// Begins or ends a code block.
    Fence,
    /// In a code block.
    Code,
}

/// All lines of `text`.
pub(super) fn lines(text: &str) -> Vec<Line<'_>> {
    let mut open: Option<&str> = None;
    let mut lines = Vec::new();
    for (index, text) in text.lines().enumerate() {
        let fence = ["```", "~~~"].into_iter().find(|fence| text.trim_start().starts_with(fence));
        let kind = match (open, fence) {
            (None, Some(_)) => LineKind::Fence,
            (Some(fence), Some(end)) if fence == end => LineKind::Fence,
            (Some(_), _) => LineKind::Code,
            (None, None) => LineKind::Text,
        };
        if kind == LineKind::Fence {
            open = if open.is_some() { None } else { fence };
        }
        lines.push(Line { number: index + 1, text, kind });
    }
    lines
}

/// The level and the words of a heading.
pub(super) fn heading<'a>(line: &Line<'a>) -> Option<(usize, &'a str)> {
    let words = line.text.trim_start_matches('#');
    let level = line.text.len() - words.len();
    let is_heading =
        line.kind == LineKind::Text && (1..=6).contains(&level) && words.starts_with(' ');
    is_heading.then(|| (level, words.trim()))
}

/// The names by which links reach the headings of `text`, as the forges make them: letters, digits, `-` and `_`, with
/// `-1` behind the second of a name.
pub(super) fn heading_anchors(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, words) in lines(text).iter().filter_map(heading) {
        let plain = words.chars().filter_map(|letter| match letter {
            ' ' => Some('-'),
            '-' | '_' => Some(letter),
            letter => letter.is_alphanumeric().then_some(letter),
        });
        let name: String = plain.flat_map(char::to_lowercase).collect();
        let earlier = names.iter().filter(|other| {
            let number = other.strip_prefix(name.as_str()).map(|rest| rest.trim_start_matches('-'));
            number.is_some_and(|rest| rest.chars().all(|digit| digit.is_ascii_digit()))
        });
        names.push(match earlier.count() {
            0 => name,
            count => format!("{name}-{count}"),
        });
    }
    names
}

/// A piece of a text, and the line in which it begins.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Piece {
    pub(super) line: usize,
    pub(super) text: String,
}

/// The targets of all links and pictures outside of code.
pub(super) fn link_targets(text: &str) -> Vec<Piece> {
    let mut targets = Vec::new();
    for paragraph in paragraphs(text) {
        let plain = paragraph.without_code();
        for (opening, closing) in [("](", ')'), ("]: ", '\n'), ("src=\"", '"'), ("srcset=\"", '"')]
        {
            for (at, _) in plain.match_indices(opening) {
                let begin = plain[..at].rfind('\n').map_or(0, |end| end + 1);
                if closing == '\n' && !plain[begin..].starts_with('[') {
                    continue;
                }
                let rest = &plain[at + opening.len()..];
                let target = rest.split(closing).next().unwrap_or(rest);
                let target = target.split_whitespace().next().unwrap_or_default();
                targets.push(paragraph.piece(at, target));
            }
        }
    }
    targets.sort_by_key(|target| target.line);
    targets
}

/// The contents of all inline code.
pub(super) fn inline_code(text: &str) -> Vec<Piece> {
    let mut found = Vec::new();
    for paragraph in paragraphs(text) {
        found.extend(paragraph.code().map(|(at, code)| paragraph.piece(at, code)));
    }
    found
}

/// The text outside of code blocks, with inline code as `x`.
pub(super) fn without_inline_code(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('`') {
        let Some((_, behind)) = behind.split_once('`') else { break };
        plain.push_str(before);
        plain.push('x');
        rest = behind;
    }
    plain.push_str(rest);
    plain
}

/// Consecutive lines of text.
struct Paragraph {
    line: usize,
    text: String,
}

fn paragraphs(text: &str) -> Vec<Paragraph> {
    let mut paragraphs: Vec<Paragraph> = Vec::new();
    let mut is_open = false;
    for line in lines(text) {
        let is_text = line.kind == LineKind::Text && !line.text.trim().is_empty();
        match paragraphs.last_mut().filter(|_| is_open && is_text) {
            Some(paragraph) => paragraph.text.push_str(line.text),
            None if is_text => {
                paragraphs.push(Paragraph { line: line.number, text: line.text.to_owned() });
            }
            None => {}
        }
        if let Some(paragraph) = paragraphs.last_mut().filter(|_| is_text) {
            paragraph.text.push('\n');
        }
        is_open = is_text;
    }
    paragraphs
}

impl Paragraph {
    fn piece(&self, at: usize, text: &str) -> Piece {
        let above = self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
        Piece { line: self.line + above, text: text.to_owned() }
    }

    /// Inline code and where it begins, without its backticks.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let mut at = 0;
        let pieces = self.text.split('`').map(move |piece| {
            let begin = at;
            at += piece.len() + 1;
            (begin, piece)
        });
        pieces.skip(1).step_by(2)
    }

    /// The text with blanks in place of inline code.
    fn without_code(&self) -> String {
        let mut plain = self.text.clone();
        for (at, code) in self.code() {
            let blanks: String =
                code.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect();
            plain.replace_range(at..at + code.len(), &blanks);
        }
        plain
    }
}
