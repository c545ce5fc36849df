//! Two nodes over a bad link, in virtual time: real keys, real ESP, nothing but the link made up.

mod daily;
mod link;
mod node;
mod scenarios;

use link::Link;
use node::Node;
