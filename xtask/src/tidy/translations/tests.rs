//! A translation that lacks something, or is one of an older text, is seen.

use super::*;

const ENGLISH: &str = "# hikyaku\n\nEnglish | [日本語](README.ja.md)\n\nCopies files.\n\n## Install\n\n\
                       See [install](docs/install.md), [copy](docs/copy.md).\n\n```sh\n# a comment\n\
                       cargo install    # slow\n```\n\n| rate | 5 of 10 `x1` |\n";
const JAPANESE: &str = "# hikyaku\n\n[English](README.md) | 日本語\n\nファイルをコピーする。\n\n\
                        ## インストール\n\n[コピー](docs/copy.md)と[説明](docs/install.md)。\n\n```sh\n\
                        cargo install  # 遅い\n```\n\n| 速度 | `x1` 10 のうち 5 |\n";

fn file(path: &str, text: &str) -> TextFile {
    TextFile { path: path.to_owned(), text: text.to_owned() }
}

fn found(english: &str, japanese: &str) -> Vec<String> {
    let findings = check(&file(ORIGINAL, english), &file(TRANSLATION, japanese));
    findings.iter().map(Finding::to_string).collect()
}

fn translated(english: &str, japanese: &str) -> String {
    marked(english, japanese).unwrap_or_else(|findings| panic!("{findings:?}"))
}

#[test]
fn a_whole_translation_is_fine() {
    let marks = translated(ENGLISH, JAPANESE);
    assert_eq!(found(ENGLISH, &marks), [""; 0]);
    assert_eq!(translated(ENGLISH, &marks), marks);
    assert_eq!(found(&ENGLISH.replace("Copies files.", "Copies\nfiles."), &marks), [""; 0]);
}

#[test]
fn a_translation_of_an_older_text_is_seen() {
    let marks = translated(ENGLISH, JAPANESE);
    let older = "is a translation of an older text: translate, then cargo xtask tidy --translated";
    for (changed, section) in [
        (ENGLISH.replace("See", "Read"), "README.ja.md:9: section 'Install'"),
        (ENGLISH.replace("a comment", "another"), "README.ja.md:9: section 'Install'"),
        (ENGLISH.replace("Copies", "Moves"), "README.ja.md:1: section 'hikyaku'"),
    ] {
        assert_eq!(found(&changed, &marks), [format!("{section} {older}")]);
    }
    assert_eq!(found(ENGLISH, JAPANESE).len(), 2);
}

#[test]
fn what_a_translation_lacks_is_seen() {
    let marks = translated(ENGLISH, JAPANESE);
    for (changed, seen) in [
        (marks.replace("| 速度 | `x1` 10", "| 速度 | `x1` 11"), "has other numbers in tables"),
        (
            marks.replace("docs/copy.md", "docs/get.md"),
            "has other targets of links: 'docs/copy.md'",
        ),
        (marks.replace("cargo install", "cargo build"), "has other lines of code: 'cargo install'"),
        (
            marks.replace("docs/copy.md)", "docs/copy.md)[a](docs/copy.md)"),
            "another order or number",
        ),
        (marks.replace("## イ", "### イ"), "lacks section 'Install' of level 2"),
        (marks.replace("## イ", "イ"), "lacks section 'Install' of level 2"),
        (format!("{marks}\n## 他\n"), "has a section '他' that English lacks"),
    ] {
        let findings = found(ENGLISH, &changed);
        assert!(findings.iter().any(|finding| finding.contains(seen)), "{seen}: {findings:?}");
        assert!(marked(ENGLISH, &changed).is_err(), "{seen}");
    }
}
