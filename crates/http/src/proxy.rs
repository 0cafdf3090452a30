//! The proxy of a request.

use crate::url::Url;
use hikyaku_forward::Scheme;
use std::env;

/// The proxies of a client.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Proxies {
    http: Option<Result<Url, Unusable>>,
    https: Option<Result<Url, Unusable>>,
    /// Hosts that are reached without a proxy: a name and all names below it, or `*`.
    direct: Vec<String>,
}

/// A proxy of the environment that this client cannot use.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{variable} names a proxy that cannot be gone through: {why}")]
pub struct Unusable {
    variable: &'static str,
    why: String,
}

impl Proxies {
    /// One proxy for all URLs.
    pub fn all(url: Url) -> Self {
        Self { http: Some(Ok(url.clone())), https: Some(Ok(url)), direct: Vec::new() }
    }

    /// Those of `http_proxy`, `https_proxy`, `all_proxy` and `no_proxy`, as curl reads them. `HTTP_PROXY` is ignored: a web
    /// server sets it for its programs to a client's header `Proxy`.
    pub fn of_environment() -> Self {
        Self::of(|name| env::var(name).ok())
    }

    fn of(value: impl Fn(&str) -> Option<String>) -> Self {
        let text = |names: &[&'static str]| {
            let told = names.iter().filter_map(|&name| Some((name, value(name)?)));
            told.into_iter().find(|(_, text)| !text.is_empty())
        };
        let proxy = |names: &[&'static str]| {
            let (variable, text) = text(names)?;
            Some(parse(&text).map_err(|why| Unusable { variable, why }))
        };
        let direct = text(&["no_proxy", "NO_PROXY"]).map(|(_, text)| text).unwrap_or_default();
        let direct = direct.split([',', ' ']).map(|name| name.trim_start_matches('.'));
        Self {
            http: proxy(&["http_proxy", "all_proxy", "ALL_PROXY"]),
            https: proxy(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            direct: direct.filter(|name| !name.is_empty()).map(str::to_ascii_lowercase).collect(),
        }
    }

    /// The proxy for a URL.
    ///
    /// # Errors
    /// The environment names a proxy of a kind that this client cannot use. It is not bypassed.
    pub fn of_url(&self, url: &Url) -> Result<Option<&Url>, Unusable> {
        let host = url.origin.host.as_str();
        let is_direct = |name: &String| {
            let below = host.strip_suffix(name.as_str());
            name == "*" || below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let proxy = match url.origin.scheme {
            Scheme::Http => self.http.as_ref(),
            Scheme::Https => self.https.as_ref(),
        };
        let proxy = proxy.filter(|_| !self.direct.iter().any(is_direct));
        proxy.map(Result::as_ref).transpose().map_err(Clone::clone)
    }
}

/// Reads the address of a proxy. The error does not repeat it, because it may have a login.
// fuzz: none, the user's own words
fn parse(text: &str) -> Result<Url, String> {
    let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Url::parse(&format!("http://{rest}")).map_err(|error| error.to_string()),
        other => Err(format!("it is spoken to by {other}://, and only http:// is known")),
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
            let proxy = proxies.of_url(&Url::parse(text).unwrap()).unwrap()?;
            Some(proxy.origin.host_and_port())
        };
        assert_eq!(host("http://a.org").as_deref(), Some("proxy.org:3128"));
        assert_eq!(host("https://a.org").as_deref(), Some("evil.org:80"));
        assert_eq!(host("https://a.intern.org"), None);
        assert_eq!(host("http://localhost"), None);
        assert!(host("http://notintern.org").is_some());
    }

    #[test]
    fn a_proxy_of_another_kind_is_refused_and_not_gone_around() {
        let proxy = |variable: &'static str, text: &'static str| {
            Proxies::of(move |name| match name {
                "no_proxy" => Some("direct.org".to_owned()),
                name => (name == variable).then(|| text.to_owned()),
            })
        };
        let url = |text: &str| Url::parse(text).unwrap();
        let (http, https) = (url("http://a.org"), url("https://a.org"));
        for text in ["socks5://u:secret@a.org", "https://a.org", "SOCKS5H://a.org:1"] {
            let all = proxy("ALL_PROXY", text);
            for url in [&http, &https] {
                let why = all.of_url(url).unwrap_err().to_string();
                assert!(why.starts_with("ALL_PROXY") && !why.contains("secret"), "{why}");
            }
            assert_eq!(all.of_url(&url("http://direct.org")), Ok(None));
            let one = proxy("https_proxy", text);
            assert_eq!(one.of_url(&http), Ok(None));
            assert!(one.of_url(&https).is_err());
        }
        assert!(proxy("http_proxy", "http://").of_url(&http).is_err());
        assert!(proxy("http_proxy", "HTTP://a.org").of_url(&http).is_ok());
    }
}
