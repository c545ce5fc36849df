//! `strait-bucket`: the server as a process, for what measures it and what starts it in another network namespace.

use std::error::Error;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;

use clap::Parser;
use strait_bucket::{Credentials, serve_here};

/// An S3-compatible server over a folder.
#[derive(Parser)]
struct Flags {
    /// The folder that has the buckets, one folder each; it is made.
    root: PathBuf,

    /// Where to listen; the address is printed as a line.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,

    /// A bucket to make, unless it is there.
    #[arg(long)]
    bucket: Vec<String>,

    /// The access key.
    #[arg(long, default_value_t = Credentials::of_tests().access_key)]
    access_key: String,

    /// The secret key.
    #[arg(long, default_value_t = Credentials::of_tests().secret_key)]
    secret_key: String,

    /// A Unix socket to make, which takes orders: a line of JSON with "rules" and "clock", answered by a line with what was counted.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let flags = Flags::parse();
    let listener = TcpListener::bind(flags.listen)?;
    let mut out = std::io::stdout();
    writeln!(out, "{}", listener.local_addr()?)?;
    out.flush()?;
    let credentials = Credentials { access_key: flags.access_key, secret_key: flags.secret_key };
    serve_here(listener, &flags.root, &flags.bucket, credentials, flags.control)?;
    Ok(())
}
