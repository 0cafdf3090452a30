//! Lines of a terminal that are written over, one for each meter. The cursor stays in the last of them.

pub(super) struct Terminal {
    width: fn() -> usize,
    /// Lines on the screen.
    drawn: usize,
}

impl Terminal {
    /// `width` tells the columns of the terminal at the time of the call.
    pub(super) const fn new(width: fn() -> usize) -> Self {
        Self { width, drawn: 0 }
    }

    /// What draws `lines` in place of those that are on the screen.
    pub(super) fn draw(&mut self, lines: &[String]) -> String {
        let mut text = match lines.len() < self.drawn {
            true => self.clear(),
            false => up(self.drawn),
        };
        let width = (self.width)();
        for (index, line) in lines.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            text += &format!("{end}\r{}\x1b[K", cut(line, width));
        }
        self.drawn = lines.len();
        text
    }

    /// What removes all lines from the screen.
    pub(super) fn clear(&mut self) -> String {
        let above = "\r\x1b[K\x1b[A".repeat(self.drawn.saturating_sub(1));
        self.drawn = 0;
        above + "\r\x1b[K"
    }
}

/// From the last of so many lines to the first.
fn up(lines: usize) -> String {
    "\x1b[A".repeat(lines.saturating_sub(1))
}

/// As much of a line as does not wrap: a line that wraps cannot be written over.
pub(super) fn cut(line: &str, width: usize) -> &str {
    let end = line.char_indices().nth(width.saturating_sub(1)).map_or(line.len(), |(at, _)| at);
    &line[..end]
}
