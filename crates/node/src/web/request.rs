//! Who may ask, and for what.

use std::fmt;
use std::net::{IpAddr, SocketAddr};

use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode, Uri};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// Characters of a token: 16 of them are beyond guessing, and a line of 256 is enough for any.
const TOKEN: std::ops::RangeInclusive<usize> = 16..=256;
/// Random bytes of the cookie, which stands for the token: as many as a key has.
const COOKIE_LEN: usize = 16;
/// What the name of the cookie begins with; the port is behind it, as browsers give cookies to all ports of a host.
const COOKIE_NAME: &str = "strait-web-";
/// The query of a link with a token.
const TOKEN_QUERY: &str = "token=";

/// What a person has to know to see the page.
pub(crate) struct WebToken(Zeroizing<String>);

impl WebToken {
    /// A token of 16 to 256 visible ASCII characters; none for anything else.
    pub(crate) fn new(text: &str) -> Option<WebToken> {
        let visible = text.bytes().all(|byte| byte.is_ascii_graphic());
        (visible && TOKEN.contains(&text.len())).then(|| WebToken(Zeroizing::new(text.to_owned())))
    }

    fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }
}

impl fmt::Debug for WebToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[token]")
    }
}

/// Who may see the page.
#[derive(Debug)]
pub(super) struct WebAccess {
    /// Where it is.
    address: SocketAddr,
    token: Option<WebToken>,
    /// What a browser has that has shown the token, `NAME=VALUE`: another one after each start.
    cookie: Zeroizing<String>,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WebPath {
    /// The page.
    Page,
    /// Its style.
    Style,
    /// Its script.
    Script,
    /// What changes of it.
    Events,
}

/// Why it is not answered, or not here.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Another method than GET and HEAD.
    Method,
    /// Asked for by another name than an address or `localhost`.
    Host,
    /// Asked for by a page of another origin.
    Origin,
    /// Without the token.
    Token,
    /// There is no such thing.
    Path,
    /// The token was right: the browser is to come back with this cookie.
    Welcome(String),
}

impl WebAccess {
    /// Access to the page at this address; `random` is used for nothing else.
    pub(super) fn new(address: SocketAddr, token: Option<WebToken>, random: &[u8; 32]) -> WebAccess {
        let mut cookie = Zeroizing::new(format!("{COOKIE_NAME}{}=", address.port()));
        random.iter().take(COOKIE_LEN).for_each(|byte| cookie.push_str(&format!("{byte:02x}")));
        WebAccess { address, token, cookie }
    }

    /// What is asked for, if it may be.
    pub(super) fn admit(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Result<WebPath, Refused> {
        if method != Method::GET && method != Method::HEAD {
            return Err(Refused::Method);
        }
        if !is_asked_by_address(uri, headers) {
            return Err(Refused::Host);
        }
        // A page of another origin may lead a person here, and not have a browser fetch anything else.
        if uri.path() != "/" && is_asked_by_other_origin(headers) {
            return Err(Refused::Origin);
        }
        if let Some(token) = &self.token {
            self.admit_with(token, uri, headers)?;
        }
        match uri.path() {
            "/" => Ok(WebPath::Page),
            "/style.css" => Ok(WebPath::Style),
            "/live.js" => Ok(WebPath::Script),
            "/events" => Ok(WebPath::Events),
            _ => Err(Refused::Path),
        }
    }

    fn admit_with(&self, token: &WebToken, uri: &Uri, headers: &HeaderMap) -> Result<(), Refused> {
        if let Some(given) = uri.query().and_then(|query| query.strip_prefix(TOKEN_QUERY)) {
            let welcome =
                || Refused::Welcome(format!("{}; Path=/; HttpOnly; SameSite=Strict", self.cookie.as_str()));
            let is_right = token.is(&unescaped(given));
            return Err(if is_right && uri.path() == "/" { welcome() } else { Refused::Token });
        }
        let bearer = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let bearer = bearer.and_then(|value| value.split_at_checked("Bearer ".len()));
        let has_token = bearer.is_some_and(|(scheme, given)| {
            scheme.eq_ignore_ascii_case(b"Bearer ") && token.is(given.trim_ascii())
        });
        if has_token || self.has_cookie(headers) { Ok(()) } else { Err(Refused::Token) }
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes);
        let mut cookies = values.flat_map(|value| value.split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
        cookies.any(|cookie| self.cookie.as_bytes().ct_eq(cookie).into())
    }

    /// The status of a refusal, and what it says.
    pub(super) fn words(&self, refused: &Refused) -> (StatusCode, String) {
        let address = self.address;
        match refused {
            Refused::Method => {
                (StatusCode::METHOD_NOT_ALLOWED, "this page is only read: use GET\n".to_owned())
            }
            Refused::Host => {
                let words = format!(
                    "this page is served by IP address or as localhost, not by another name: open http://{address}/\n"
                );
                (StatusCode::FORBIDDEN, words)
            }
            Refused::Origin => {
                (StatusCode::FORBIDDEN, "this is not served to pages of other origins\n".to_owned())
            }
            Refused::Token => {
                let words = format!(
                    "this page asks for the token in web_token_file: open http://{address}/?token=TOKEN, or send the header \
                     \"Authorization: Bearer TOKEN\"\n"
                );
                (StatusCode::UNAUTHORIZED, words)
            }
            Refused::Path => (StatusCode::NOT_FOUND, "there is one page here: /\n".to_owned()),
            Refused::Welcome(_) => (StatusCode::SEE_OTHER, String::new()),
        }
    }
}

/// Whether the host that is asked for is an address or `localhost`. A name that somebody else gave an address of ours (DNS rebinding)
/// would let a page of theirs read this one.
fn is_asked_by_address(uri: &Uri, headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let host = hosts.next().and_then(|host| host.to_str().ok());
    let authority = uri.authority().is_none_or(|authority| is_address(authority.as_str()));
    hosts.next().is_none() && host.is_some_and(is_address) && authority
}

/// Whether this host, with or without a port, is an IP address or `localhost`.
fn is_address(host: &str) -> bool {
    let is_port = |port: &str| port.parse::<u16>().is_ok();
    match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').is_some_and(|(address, port)| {
            matches!(address.parse(), Ok(IpAddr::V6(_)))
                && (port.is_empty() || port.strip_prefix(':').is_some_and(is_port))
        }),
        None => {
            let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
            let is_ours = name.eq_ignore_ascii_case("localhost") || matches!(name.parse(), Ok(IpAddr::V4(_)));
            is_ours && port.is_none_or(is_port)
        }
    }
}

/// Whether a browser says that a page of another origin asks (Fetch Metadata).
fn is_asked_by_other_origin(headers: &HeaderMap) -> bool {
    let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
    matches!(site, Some(site) if site != b"same-origin" && site != b"none")
}

/// A part of a query with its escapes (`%2B`) read.
fn unescaped(text: &str) -> Zeroizing<Vec<u8>> {
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        let escape = match rest {
            [b'%', high, low, ..] => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                digit(*high).zip(digit(*low)).and_then(|(high, low)| u8::try_from(high * 16 + low).ok())
            }
            _ => None,
        };
        rest = if escape.is_some() { rest.get(3..).unwrap_or_default() } else { behind };
        bytes.push(escape.unwrap_or(*first));
    }
    bytes
}
