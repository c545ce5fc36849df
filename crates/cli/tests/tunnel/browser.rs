//! A real browser without a window, Chromium: it is told what to do over a pipe (Chrome DevTools Protocol), and asked what it shows.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use strait_testbed::Namespace;
use strait_testdata::skip::{Need, skip};

use crate::pair::PATIENCE;

/// Flags without which it would want a window, a sandbox of its own, or the Internet.
pub(crate) const FLAGS: [&str; 6] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-extensions",
];

/// A browser at a host, with one page.
pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    /// What the page is called in messages.
    session: Option<Value>,
    calls: u64,
    /// What it complained about: errors, and what a page does that its policy forbids.
    pub(crate) complaints: Vec<String>,
}

/// Whether there is a browser; says so when a test is skipped.
pub(crate) fn has_browser() -> bool {
    std::fs::metadata("/usr/bin/chromium").is_ok() || skip(Need::Programs, "no chromium")
}

impl Browser {
    /// Starts it at `host`; it keeps its files in `folder`.
    pub(crate) fn open(host: &Namespace, folder: &Path) -> Browser {
        let mut command = host.command("sh");
        // It reads what it is told from descriptor 3, and answers at 4.
        command.args([
            "-c",
            "exec chromium \"$@\" --remote-debugging-pipe 3<&0 4>&1 </dev/null >/dev/null 2>&1",
        ]);
        command.arg("sh").args(FLAGS).arg(format!("--user-data-dir={}", folder.display()));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser = Browser { child, to, from, session: None, calls: 0, complaints: Vec::new() };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        browser.session = Some(browser.call("Target.attachToTarget", attach)["sessionId"].clone());
        for domain in ["Log", "Runtime", "Page", "DOM"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Has it do something; what it answers.
    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.try_call(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn try_call(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.clone();
        }
        write!(self.to, "{message}\0").unwrap();
        self.to.flush().unwrap();
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "the browser ended");
            let mut said: Value = serde_json::from_slice(&bytes).unwrap();
            if said["id"] == self.calls {
                return if said["error"].is_null() {
                    Ok(said["result"].take())
                } else {
                    Err(said["error"].take())
                };
            }
            match said["method"].as_str() {
                Some("Log.entryAdded") => self.complaints.push(said["params"]["entry"].to_string()),
                Some("Runtime.exceptionThrown") => self.complaints.push(said["params"].to_string()),
                _ => {}
            }
        }
    }

    /// Whether pages may run scripts from now on.
    pub(crate) fn set_scripts(&mut self, allowed: bool) {
        self.call("Emulation.setScriptExecutionDisabled", json!({"value": !allowed}));
    }

    /// Opens a page.
    pub(crate) fn go(&mut self, url: &str) {
        let went = self.call("Page.navigate", json!({"url": url}));
        assert!(went["errorText"].is_null(), "{url}: {went}");
    }

    /// The elements of the page as they are now; none while another is being loaded.
    fn html(&mut self) -> Option<String> {
        let document = self.try_call("DOM.getDocument", json!({"depth": 0})).ok()?;
        let whole = json!({"nodeId": document["root"]["nodeId"]});
        let html = self.try_call("DOM.getOuterHTML", whole).ok()?;
        html["outerHTML"].as_str().map(str::to_owned)
    }

    /// Waits until the page is so; its elements then.
    pub(crate) fn shows(&mut self, what: &str, good: impl Fn(&str) -> bool) -> String {
        let begun = Instant::now();
        loop {
            let html = self.html().unwrap_or_default();
            if good(&html) {
                return html;
            }
            assert!(begun.elapsed() < PATIENCE, "never: {what}\n{html}\n{:?}", self.complaints);
            thread::sleep(Duration::from_millis(200));
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
