//! Downloads that the browser extension hands over: the browser asks this gateway for them in place of the site, and the
//! gateway asks the site by HTTP/1.1, whose downloads no window limits. TLS to the site ends here, where its certificate is
//! checked.
//!
//! The gateway asks through its own HTTP proxy, so that such a download is a flow like any other.

mod fetch;
mod link;

pub(crate) use fetch::run;
pub(crate) use link::{Link, decoded};

use crate::pac::Site;
use httparse::Request;
use std::net::SocketAddr;

/// A download that was handed over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Order {
    link: Link,
    /// Headers of the request to the site.
    headers: Vec<(&'static str, Vec<u8>)>,
    /// The HTTP proxy of this gateway.
    proxy: SocketAddr,
}

/// Headers of the browser's request that go on to the site, and the names that they have there. The extension cannot set
/// cookies and the referrer by their own names.
const HEADERS: [(&str, &str); 6] = [
    ("range", "Range"),
    ("if-range", "If-Range"),
    ("user-agent", "User-Agent"),
    ("accept-language", "Accept-Language"),
    ("x-hikyaku-cookie", "Cookie"),
    ("x-hikyaku-referer", "Referer"),
];
const HEADERS_MAX: usize = 64;

impl Order {
    /// Reads what the extension asks for: `path` is what follows the token, `get/NAME?ADDRESS` with the address of the web
    /// percent-encoded. `None` if it is something else, or no address of a site.
    // fuzz: none, of a program of this user that knows the token; the head is parsed by httparse
    pub(crate) fn read(
        path: &str,
        head: &[u8],
        (sites, proxy): (&[Site], SocketAddr),
    ) -> Option<Self> {
        let (_, address) = path.strip_prefix("get/")?.split_once('?')?;
        let link = Link::parse(&decoded(address)?)?;
        let is_of_site = sites.iter().any(|site| site.has(link.host()));
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = Request::new(&mut headers);
        request.parse(head).ok()?;
        let handed = request.headers.iter().filter_map(|header| {
            let is = |name: &&(&str, &str)| header.name.eq_ignore_ascii_case(name.0);
            let (_, name) = HEADERS.iter().find(is)?;
            Some((*name, header.value.to_vec()))
        });
        let headers = handed.collect();
        is_of_site.then_some(Self { link, headers, proxy })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_downloads_of_the_named_sites_are_taken_over() {
        let sites: Vec<Site> = ["example.org", "10.0.0.7"].map(|site| site.parse().unwrap()).into();
        let proxy = "127.0.0.1:5210".parse().unwrap();
        let head =
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1:5210\r\nRange: bytes=5-\r\nCookie: own=1\r\n\
                     X-Hikyaku-Cookie: a=b\r\n\r\n";
        let read = |path: &str| Order::read(path, head, (&sites, proxy));
        let order = read("get/file?https%3A%2F%2Fdata.example.org%2Ffile%3Fa%3Db").unwrap();
        assert_eq!(order.link.to_string(), "https://data.example.org/file?a=b");
        let wanted = [("Range", b"bytes=5-".to_vec()), ("Cookie", b"a=b".to_vec())];
        assert_eq!(order.headers, wanted, "cookies of the gateway's own address stay here");
        assert!(read("get/x?http%3A%2F%2F10.0.0.7%3A8000%2F").is_some());
        for path in [
            "get/file",
            "get?https%3A%2F%2Fexample.org%2F",
            "get/file?ftp%3A%2F%2Fexample.org%2F",
            "get/file?https%3A%2F%2Fevil.example%2F",
            "get/file?https%3A%2F%2Fexample.org.evil.example%2F",
            "get/file?https%3A%2F%2Fnotexample.org%2F",
            "get/file?https%3A%2F%2Fa%40example.org%2F",
            "get/file?https%3A%2F%2Fexample.org%2F%0d%0aX%3A",
            "get/file?%zz",
        ] {
            assert_eq!(read(path), None, "{path}");
        }
    }
}
