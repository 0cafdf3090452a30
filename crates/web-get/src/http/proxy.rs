//! Which proxy a request goes through.

use super::url::Url;
use hikyaku_forward::Scheme;
use std::env;

/// The proxies of a command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Proxies {
    http: Option<Url>,
    https: Option<Url>,
    /// Hosts that are reached without: a name and all names below it, or `*`.
    direct: Vec<String>,
}

impl Proxies {
    /// One for everything.
    pub(crate) fn all(url: Url) -> Self {
        Self { http: Some(url.clone()), https: Some(url), direct: Vec::new() }
    }

    /// `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, as curl reads them. `HTTP_PROXY` does not count: a web
    /// server sets it for its programs to what a client sent as `Proxy`.
    pub(crate) fn of_environment() -> Self {
        Self::of(|name| env::var(name).ok())
    }

    fn of(value: impl Fn(&str) -> Option<String>) -> Self {
        let text = |names: &[&str]| {
            names.iter().filter_map(|name| value(name)).find(|text| !text.is_empty())
        };
        let proxy = |names: &[&str]| {
            let text = text(names)?;
            let text = if text.contains("://") { text } else { format!("http://{text}") };
            // A proxy of another kind, such as SOCKS, is for other programs.
            Url::parse(&text).ok().filter(|url| url.origin.scheme == Scheme::Http)
        };
        let direct = text(&["no_proxy", "NO_PROXY"]).unwrap_or_default();
        let direct = direct.split([',', ' ']).map(|name| name.trim_start_matches('.'));
        Self {
            http: proxy(&["http_proxy", "all_proxy", "ALL_PROXY"]),
            https: proxy(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            direct: direct.filter(|name| !name.is_empty()).map(str::to_ascii_lowercase).collect(),
        }
    }

    /// The proxy for a URL.
    pub(crate) fn of_url(&self, url: &Url) -> Option<&Url> {
        let host = url.origin.host.as_str();
        let is_direct = |name: &String| {
            let below = host.strip_suffix(name.as_str());
            name == "*" || below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let proxy = match url.origin.scheme {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        };
        proxy.filter(|_| !self.direct.iter().any(is_direct))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_proxies() {
        let proxies = Proxies::of(|name| match name {
            "http_proxy" => Some("proxy.org:3128".to_owned()),
            "HTTP_PROXY" | "https_proxy" => Some("http://evil.org".to_owned()),
            "no_proxy" => Some("localhost,.intern.org".to_owned()),
            _ => None,
        });
        let host = |text: &str| {
            let proxy = proxies.of_url(&Url::parse(text).unwrap())?;
            Some(proxy.origin.host_and_port())
        };
        assert_eq!(host("http://a.org").as_deref(), Some("proxy.org:3128"));
        assert_eq!(host("https://a.org").as_deref(), Some("evil.org:80"));
        assert_eq!(host("https://a.intern.org"), None);
        assert_eq!(host("http://localhost"), None);
        assert!(host("http://notintern.org").is_some());
    }

    #[test]
    fn a_proxy_of_another_kind_is_not_used() {
        let proxies = Proxies::of(|_| Some("socks5://a.org".to_owned()));
        assert_eq!(proxies.of_url(&Url::parse("http://a.org").unwrap()), None);
    }
}
