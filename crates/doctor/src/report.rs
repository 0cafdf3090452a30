//! The printed report, and the exit code.

use crate::check::{Check, Persistence, State};
use crate::verdict::Verdict;
use hikyaku_console::{Document, ExitCode, Stream, Tone};
use serde::Serialize;
use std::fmt::Write;

/// Where the names of the checks are explained.
const DOCUMENT: &str = "docs/doctor.md";

/// Everything that was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Report {
    program: &'static str,
    host: Option<String>,
    verdicts: Vec<Verdict>,
    checks: Vec<Check>,
}

impl Report {
    pub(crate) fn new(host: Option<String>, verdicts: Vec<Verdict>, checks: Vec<Check>) -> Self {
        let program = concat!("hikyaku ", env!("CARGO_PKG_VERSION"));
        Self { program, host, verdicts, checks }
    }

    /// The document, as people read it too.
    pub(crate) fn json(&self) -> serde_json::Result<String> {
        Ok(format!("{}\n", serde_json::to_string_pretty(&Document::new(self))?))
    }

    /// The text for `stream`: the verdicts, then a line a check, and its remedy below it: what failed, what is worth a warning, and the others.
    pub(crate) fn text(&self, stream: Stream) -> String {
        let mut text = String::new();
        for verdict in &self.verdicts {
            let _ = writeln!(text, "{verdict}");
        }
        if self.verdicts.is_empty()
            && let Some(host) = &self.host
        {
            let _ = writeln!(
                text,
                "nothing can be said of the path to {host}; the first line below says why"
            );
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let rank = |check: &&Check| match check.state {
            State::Fail => 0,
            State::Warn => 1,
            State::Ok | State::Note | State::Skip => 2,
        };
        let mut checks: Vec<&Check> = self.checks.iter().collect();
        checks.sort_by_key(rank);
        text.extend(checks.into_iter().map(|check| line(check, stream)));
        let has_more = |check: &Check| !matches!(check.state, State::Ok | State::Skip);
        if self.checks.iter().any(has_more) {
            let _ = writeln!(text, "\nEach check is explained under its name in {DOCUMENT}.");
        }
        text
    }

    /// The lines of the checks that failed or are worth a warning.
    pub(crate) fn complaints(&self, stream: Stream) -> String {
        let bad = |check: &&Check| matches!(check.state, State::Fail | State::Warn);
        self.checks.iter().filter(bad).map(|check| line(check, stream)).collect()
    }

    /// 0 if no check failed, 5 if those that did may pass by themselves, else 6.
    pub(crate) fn exit_code(&self) -> ExitCode {
        let mut failed = self.checks.iter().filter(|check| check.state == State::Fail).peekable();
        if failed.peek().is_none() {
            return ExitCode::Success;
        }
        let may_pass = failed.all(|check| check.persistence == Persistence::MayPass);
        if may_pass { ExitCode::MayPass } else { ExitCode::WillFail }
    }
}

/// The line of a check, and its remedy below it.
fn line(check: &Check, stream: Stream) -> String {
    let (state, tone) = shown(check.state);
    let state = stream.paint(tone, format_args!("{state:<5}"));
    let mut text = format!("{state} {:<19} {}\n", check.id.name(), check.found);
    if let Some(remedy) = &check.remedy {
        let remedy = stream.paint(Tone::Command, remedy);
        let _ = writeln!(text, "{:26}try: {remedy}", "");
    }
    text
}

const fn shown(state: State) -> (&'static str, Tone) {
    match state {
        State::Ok => ("OK", Tone::Good),
        State::Note => ("note", Tone::Note),
        State::Warn => ("WARN", Tone::Warning),
        State::Fail => ("FAIL", Tone::Error),
        State::Skip => ("skip", Tone::Note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Id;

    fn report(checks: Vec<Check>) -> Report {
        Report::new(None, Vec::new(), checks)
    }

    #[test]
    fn the_exit_code_tells_whether_to_try_again() {
        let fail = |id| Check::new(id, State::Fail, "no");
        assert_eq!(report(vec![Check::ok(Id::Rtt, "1 ms")]).exit_code(), ExitCode::Success);
        assert_eq!(report(vec![fail(Id::Ssh).passing()]).exit_code(), ExitCode::MayPass);
        let both = vec![fail(Id::Ssh).passing(), fail(Id::Udp)];
        assert_eq!(report(both).exit_code(), ExitCode::WillFail);
        let warned = vec![Check::new(Id::SocketDrops, State::Warn, "5 %")];
        assert_eq!(report(warned).exit_code(), ExitCode::Success);
    }

    #[test]
    fn a_remedy_stands_below_its_check() {
        let check = Check::new(Id::FarProgram, State::Fail, "not there").with_remedy("install it");
        let found = report(vec![Check::ok(Id::Rtt, "1 ms"), check]);
        let text = found.text(Stream::Plain);
        assert!(found.complaints(Stream::Plain).lines().all(|line| text.contains(line)), "{text}");
        assert_eq!(found.complaints(Stream::Plain).lines().count(), 2);
        assert!(text.starts_with("FAIL  far-program         not there\n"), "{text}");
        assert!(text.contains("\n                          try: install it\n"), "{text}");
    }

    #[test]
    fn what_failed_comes_first_and_a_path_without_a_verdict_is_named() {
        let fail = Check::new(Id::Ssh, State::Fail, "no login");
        let checks = vec![Check::ok(Id::Rtt, "1 ms"), fail];
        let text = Report::new(Some("far".to_owned()), Vec::new(), checks).text(Stream::Plain);
        let mut lines = text.lines();
        assert!(
            lines.next().unwrap().starts_with("nothing can be said of the path to far"),
            "{text}"
        );
        assert!(lines.nth(1).unwrap().starts_with("FAIL  ssh"), "{text}");
    }

    #[test]
    fn the_json_has_a_version_and_the_measures() {
        let check = Check::ok(Id::Rtt, "200 ms").measured(200.0, "ms");
        let json: serde_json::Value =
            serde_json::from_str(&report(vec![check]).json().unwrap()).unwrap();
        assert_eq!(json["format"], 1);
        let check = &json["checks"][0];
        assert_eq!((&check["id"], &check["state"]), (&"rtt".into(), &"ok".into()));
        assert_eq!((&check["value"], &check["unit"]), (&200.0.into(), &"ms".into()));
    }
}
