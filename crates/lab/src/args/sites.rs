//! The options for sites: `--site tokyo:4` and `--link tokyo-nict=1gbit,100ms,loss:0.1%`.

use super::link::LinkOptions;
use crate::running::Change;
use crate::site::{Layout, PairName, Site};
use crate::sites::{RivalSpec, SitesSpec};
use crate::trouble::usage;
use anyhow::Result;
use clap::Args;
use hikyaku_link::{PathSpec, Setting, parse_time};
use hikyaku_units::Rate;
use std::str::FromStr;

/// The sites of a lab.
#[derive(Debug, Args)]
pub(crate) struct SiteOptions {
    /// A site with HOSTS hosts behind a gateway; the hosts are called NAME1, NAME2 and so on. Give
    /// at least two sites; they replace client and servers. Every two sites have a link with the
    /// settings under 'Link'
    #[arg(long = "site", value_name = "NAME:HOSTS", help_heading = "Sites")]
    #[arg(conflicts_with_all = ["servers", "server_rate", "server_rtt", "rebind_every"])]
    sites: Vec<Site>,
    #[command(flatten)]
    links: PairOptions,
    /// TCP cross traffic between the gateways of every two sites: FLOWS flows, each starting TIME
    /// after the previous one, such as 4:100s. For one link, from A to B: --link A-B=rivals:4:100s
    #[arg(long, value_name = "FLOWS[:TIME]", help_heading = "Sites", requires = "sites")]
    rivals: Option<RivalSpec>,
}

/// The links whose settings differ from the common ones.
#[derive(Debug, Args)]
pub(crate) struct PairOptions {
    /// Settings of the link between sites A and B that differ from the common ones: a rate, a
    /// round-trip time, or KEY:VALUE with the names of the options under 'Link', such as
    /// tokyo-nict=1gbit,100ms,loss:0.1%,queue:500p. 'up' is the direction from A to B
    #[arg(long = "link", value_name = "A-B=SETTING,...", help_heading = "Sites")]
    links: Vec<PairSettings>,
}

/// Settings of one link, as typed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PairSettings {
    pair: PairName,
    settings: Vec<(String, String)>,
    rivals: Option<RivalSpec>,
}

impl FromStr for PairSettings {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((pair, settings)) = text.split_once('=') else {
            return Err(format!("'{text}' is not like tokyo-nict=1gbit,100ms"));
        };
        let mut link = Self { pair: pair.parse()?, settings: Vec::new(), rivals: None };
        for text in settings.split(',') {
            match text.trim().strip_prefix("rivals:") {
                Some(rivals) => link.rivals = Some(rivals.parse()?),
                None => link.settings.push(setting(text)?),
            }
        }
        Ok(link)
    }
}

/// Parses one setting of a link into key and value. A bare rate or time stands for `rate` or `rtt`.
fn setting(text: &str) -> Result<(String, String), String> {
    let text = text.trim();
    let (key, value) = match text.split_once(':') {
        Some((key, value)) => (key, value),
        None if text.parse::<Rate>().is_ok() => ("rate", text),
        None if parse_time(text).is_ok() => ("rtt", text),
        None => {
            return Err(format!(
                "'{text}' is not a rate (1gbit), a round-trip time (100ms) or KEY:VALUE (loss:0.1%)"
            ));
        }
    };
    Setting::parse(key, value).map_err(|error| error.to_string())?;
    Ok((key.to_owned(), value.to_owned()))
}

impl SiteOptions {
    /// The sites and their links, with `path` as the common link; `None` if there is no `--site`.
    pub(super) fn spec(&self, path: &PathSpec) -> Result<Option<SitesSpec>> {
        if self.sites.is_empty() {
            return match &self.links.links[..] {
                [] => Ok(None),
                [first, ..] => {
                    Err(usage(format!("--link {} needs sites: give --site twice", first.pair)))
                }
            };
        }
        let layout = Layout::new(self.sites.clone()).map_err(usage)?;
        let mut spec = SitesSpec::new(layout, path.clone());
        if let Some(rivals) = self.rivals {
            spec.set_rivals(rivals);
        }
        for link in &self.links.links {
            if let Some(rivals) = link.rivals {
                spec.set_rivals_of(&link.pair, rivals).map_err(usage)?;
            }
        }
        for change in self.links.changes() {
            if let Some(pair) = &change.pair {
                let set = spec.set(pair, change.setting()?);
                set.map_err(|error| usage(format!("--link {pair}: {error}")))?;
            }
        }
        Ok(Some(spec))
    }
}

impl PairOptions {
    /// The changes of single links, in the order in which they were typed.
    fn changes(&self) -> impl Iterator<Item = Change> + '_ {
        self.links.iter().flat_map(|link| {
            let of_pair = |(key, value): &(String, String)| Change {
                pair: Some(link.pair.clone()),
                key: key.clone(),
                value: value.clone(),
            };
            link.settings.iter().map(of_pair)
        })
    }
}

/// The changes that `lab set` makes: those of all links come first.
pub(super) fn changes(all: &LinkOptions, pairs: &PairOptions) -> Result<Vec<Change>> {
    if let Some(link) = pairs.links.iter().find(|link| link.rivals.is_some()) {
        return Err(usage(format!(
            "--link {}: rivals cannot be changed while the lab runs",
            link.pair
        )));
    }
    let of_all = |(key, value): &(String, String)| Change {
        pair: None,
        key: key.clone(),
        value: value.clone(),
    };
    Ok(all.pairs.iter().map(of_all).chain(pairs.changes()).collect())
}
