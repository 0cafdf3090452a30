//! A proxy configuration for the user's own browser (PAC): connections to named sites go through the gateway, all others
//! go direct. If the gateway is not there, those to the sites go direct as well.

use hikyaku_forward::Host;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// A host and, if it is a name, all names below it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Site(Host);

impl FromStr for Site {
    type Err = String;

    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
        let host = Host::parse(text).ok().filter(|host| match host {
            Host::Name(name) => name.chars().all(is_plain) && !name.starts_with(['.', '-']),
            Host::Address(_) => true,
        });
        let host = host.ok_or_else(|| {
            format!(
                "'{text}' is not a host: expected a name such as data.example.org, or an address"
            )
        })?;
        if is_direct(&host) {
            return Err(format!(
                "'{text}' is this machine, which browsers reach without any proxy"
            ));
        }
        Ok(Self(match host {
            Host::Name(name) => Host::Name(name.to_ascii_lowercase()),
            address => address,
        }))
    }
}

impl Site {
    /// Whether this is the host, or the host is below it.
    pub(crate) fn has(&self, host: &Host) -> bool {
        match (&self.0, host) {
            (Host::Name(own), Host::Name(name)) => {
                let name = name.to_ascii_lowercase();
                name.strip_suffix(own.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            (own, other) => own == other,
        }
    }

    /// The host as it is in an address, without brackets.
    pub(crate) fn bare(&self) -> String {
        match &self.0 {
            Host::Name(name) => name.clone(),
            Host::Address(address) => address.to_string(),
        }
    }

    /// The pattern of all its addresses, as extensions of browsers have it.
    pub(crate) fn pattern(&self) -> String {
        match &self.0 {
            Host::Name(name) => format!("*://*.{name}/*"),
            address => format!("*://{address}/*"),
        }
    }
}

/// Whether browsers go to a host directly, whatever a PAC file says.
fn is_direct(host: &Host) -> bool {
    match host {
        Host::Name(name) => {
            let name = name.to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Address(address) => address.to_canonical().is_loopback(),
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The script, for a gateway at `proxy`.
pub(crate) fn script(sites: &[Site], proxy: SocketAddr) -> String {
    // The characters of a site are plain (`Site::from_str`), so that each is one text of the script.
    let condition = |site: &Site| match &site.0 {
        Host::Name(name) => format!("host == \"{name}\" || dnsDomainIs(host, \".{name}\")"),
        // Browsers give an address of IPv6 with or without its brackets.
        Host::Address(address) => format!("host == \"{address}\" || host == \"[{address}]\""),
    };
    let conditions: Vec<String> = sites.iter().map(condition).collect();
    format!(
        "function FindProxyForURL(url, host) {{\n  host = host.toLowerCase();\n  if ({}) {{\n    return \
         \"PROXY {proxy}; DIRECT\";\n  }}\n  return \"DIRECT\";\n}}\n",
        conditions.join("\n      || ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_a_host_and_nothing_of_a_script() {
        for text in ["data.example.org", "DATA.example.org", "10.0.0.7", "2001:db8::1", "my_host"] {
            assert!(text.parse::<Site>().is_ok(), "{text}");
        }
        for text in [
            "",
            "http://a",
            "a\"b",
            "a)b",
            "a b",
            "*.a",
            ".a",
            "-a",
            "a:80",
            "localhost",
            "127.0.0.1",
            "::1",
            "a\nb",
            "x.localhost",
        ] {
            assert!(text.parse::<Site>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn named_sites_go_through_the_gateway_and_others_do_not() {
        let sites = ["Example.org", "10.0.0.7"].map(|text| text.parse().unwrap());
        let wanted = "function FindProxyForURL(url, host) {\n  host = host.toLowerCase();\n  \
            if (host == \"example.org\" || dnsDomainIs(host, \".example.org\")\n      \
            || host == \"10.0.0.7\" || host == \"[10.0.0.7]\") {\n    \
            return \"PROXY 127.0.0.1:5210; DIRECT\";\n  }\n  return \"DIRECT\";\n}\n";
        assert_eq!(script(&sites, "127.0.0.1:5210".parse().unwrap()), wanted);
    }
}
