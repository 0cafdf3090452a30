//! What machine the far side is, as `uname -sm` prints it.

use super::elf::Architecture;
use hikyaku_fs::Shown;

/// The words that every login shell runs alike.
pub(super) const QUESTION: &str = "uname -sm";
/// Characters of an answer in an error.
const SHOWN_CHARS_MAX: usize = 60;

/// The processor of a far side with Linux; otherwise the last line that was said, fit to be shown. A start-up file of the
/// shell may say something before.
// fuzz: lines
pub fn system(said: &[u8]) -> Result<Architecture, String> {
    let lines = || said.rsplit(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    let linux = lines().find_map(|line| {
        let machine = std::str::from_utf8(line.strip_prefix(b"Linux ")?).ok()?;
        Architecture::named(machine)
    });
    linux.ok_or_else(|| {
        let last = lines().find(|line| !line.is_empty()).unwrap_or_default();
        let text: String = String::from_utf8_lossy(last).chars().take(SHOWN_CHARS_MAX).collect();
        Shown::new(text.as_bytes()).to_string()
    })
}
