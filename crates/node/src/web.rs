//! One page that shows the node, for a person with a browser: read only, and off unless the configuration has an address for it.
//!
//! ```text
//! server    the port: few connections, none for long, and one report a second for all of them
//! request   who may ask, and for what
//! page      the page and its sections, made here: they are complete without a script
//! sections  what each section has
//! charts    bytes before and on the wire, as SVG
//! html      text and tables as HTML, in which everything is escaped
//! ```
//!
//! The page is made from what `strait show` and `strait saved` say. The packet threads are asked for nothing else, and never wait.

mod charts;
mod html;
mod page;
mod request;
mod sections;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use request::WebToken;
pub use server::{Web, WebError};
