//! The S3-compatible server, as a process on the broker's host.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use strait_testbed::Namespace;

use crate::error::Error;

/// The bucket that is used.
const BUCKET: &str = "bench";
/// What requests are signed with; the server has no other users.
const KEYS: [&str; 2] = ["strait-bench", "strait-bench-secret"];

/// The server; dropped, it is killed.
#[derive(Debug)]
pub(super) struct BucketProcess {
    child: Child,
    port: u16,
    root: PathBuf,
}

impl BucketProcess {
    /// Starts `program` on a free port of all addresses of a host, with its files below `root`.
    pub(super) fn start(program: &Path, host: &Namespace, root: &Path) -> Result<BucketProcess, Error> {
        if !program.is_file() {
            return Err(Error::NoProgram(program.to_owned()));
        }
        let mut command = host.command(program);
        command.arg(root).args(["--bucket", BUCKET, "--listen", "0.0.0.0:0"]);
        command.args(["--access-key", KEYS[0], "--secret-key", KEYS[1]]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(Error::doing("start strait-bucket"))?;
        let mut line = String::new();
        let read = child.stdout.take().map(|out| BufReader::new(out).read_line(&mut line));
        read.transpose().map_err(Error::doing("read where strait-bucket listens"))?;
        let Ok(address) = line.trim().parse::<SocketAddr>() else {
            let _ = child.kill();
            let _ = child.wait();
            return Err(Error::Silent { what: "where the server listens", way: "strait-bucket".to_owned() });
        };
        Ok(BucketProcess { child, port: address.port(), root: root.to_owned() })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The lines of `[broker]` for a store in the bucket; makes the file with the keys in `folder`.
    pub(super) fn section(&self, folder: &Path) -> Result<String, Error> {
        let file = folder.join("s3.credentials");
        let lines = format!("access_key_id = {}\nsecret_access_key = {}\n", KEYS[0], KEYS[1]);
        let written = fs::write(&file, lines)
            .and_then(|()| fs::set_permissions(&file, PermissionsExt::from_mode(0o600)));
        written.map_err(Error::doing("write the keys of the bucket"))?;
        Ok(format!(
            "store = \"s3://{BUCKET}/post\"\nendpoint = \"http://127.0.0.1:{}\"\nregion = \"us-east-1\"\nallow_http = true\n\
             credentials_file = \"{}\"\nspool = \"{}/spool\"\n",
            self.port,
            file.display(),
            folder.display()
        ))
    }

    /// The words of a shell that give `curl` the keys.
    pub(super) fn curl() -> String {
        // curl 7.88 does not say by itself that the body is not signed; that it is not spares it a second pass over the body.
        format!(
            "curl --fail --silent --show-error --aws-sigv4 aws:amz:us-east-1:s3 --user {}:{} \
             --header 'x-amz-content-sha256: UNSIGNED-PAYLOAD'",
            KEYS[0], KEYS[1]
        )
    }

    /// The URL of an object, for a host that reaches the server at `address`.
    pub(super) fn url(&self, address: IpAddr, key: &str) -> String {
        format!("http://{}/{BUCKET}/{key}", SocketAddr::new(address, self.port))
    }

    /// The file of an object.
    pub(super) fn file(&self, key: &str) -> PathBuf {
        self.root.join(BUCKET).join(key)
    }
}

impl Drop for BucketProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
