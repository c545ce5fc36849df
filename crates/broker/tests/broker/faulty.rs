//! A store in memory that fails as it is told: errors, silence, puts that are done and not answered, a clock that is off.

use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// An error, and nothing is done, as with 500 and 503.
    Error,
    /// No answer, and nothing is done.
    Silence,
    /// It is done, and answered with an error.
    Late,
    /// No room is left.
    Full,
}

/// The store. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faulty {
    inner: Arc<InMemory>,
    script: Arc<Mutex<Script>>,
}

#[derive(Debug, Default)]
struct Script {
    /// Requests until trouble begins, how many have it, and which.
    trouble: Option<(usize, usize, Trouble)>,
    requests: usize,
    /// How far the clock is off.
    clock: Duration,
}

impl Faulty {
    /// After so many requests, the next ones have this trouble.
    pub(crate) fn trouble(&self, after: usize, count: usize, trouble: Trouble) {
        self.script.lock().unwrap().trouble = Some((after, count, trouble));
    }

    pub(crate) fn heal(&self) {
        self.script.lock().unwrap().trouble = None;
    }

    /// The clock goes so far ahead.
    pub(crate) fn set_clock(&self, ahead: Duration) {
        self.script.lock().unwrap().clock = ahead;
    }

    /// Requests since the last time.
    pub(crate) fn requests(&self) -> usize {
        std::mem::take(&mut self.script.lock().unwrap().requests)
    }

    /// All names.
    pub(crate) async fn names(&self) -> Vec<String> {
        let all: Vec<_> = self.inner.list(None).collect().await;
        all.into_iter()
            .map(|about| about.unwrap().location.to_string())
            .filter(|name| name != "probe")
            .collect()
    }

    async fn before(&self) -> Result<bool> {
        let trouble = {
            let mut script = self.script.lock().unwrap();
            script.requests += 1;
            match &mut script.trouble {
                Some((0, 0, _)) | None => None,
                Some((0, count, trouble)) => {
                    *count -= 1;
                    Some(*trouble)
                }
                Some((after, ..)) => {
                    *after -= 1;
                    None
                }
            }
        };
        match trouble {
            None => Ok(false),
            Some(Trouble::Late) => Ok(true),
            Some(Trouble::Error) => Err(failed(std::io::Error::other("503 Slow Down"))),
            Some(Trouble::Full) => Err(failed(std::io::ErrorKind::StorageFull.into())),
            Some(Trouble::Silence) => std::future::pending().await,
        }
    }

    fn shifted(&self, mut about: ObjectMeta) -> ObjectMeta {
        about.last_modified += self.script.lock().unwrap().clock;
        about
    }
}

fn failed(source: std::io::Error) -> Error {
    Error::Generic { store: "faulty", source: Box::new(source) }
}

fn late<T>(done: T, is_late: bool) -> Result<T> {
    if is_late { Err(failed(std::io::Error::other("the connection was lost"))) } else { Ok(done) }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("faulty")
    }
}

#[async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(&self, path: &Path, content: PutPayload, options: PutOptions) -> Result<PutResult> {
        let is_late = self.before().await?;
        // A store that is not in memory gives the buffers back.
        let content: PutPayload = content.iter().map(|part| Bytes::copy_from_slice(part)).collect();
        late(self.inner.put_opts(path, content, options).await?, is_late)
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        let is_late = self.before().await?;
        let mut got = self.inner.get_opts(path, options).await?;
        got.meta = self.shifted(got.meta);
        late(got, is_late)
    }

    async fn get_ranges(&self, path: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let is_late = self.before().await?;
        late(self.inner.get_ranges(path, ranges).await?, is_late)
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let this = self.clone();
        let each = move |path: Result<Path>| {
            let this = this.clone();
            async move {
                let is_late = this.before().await?;
                let path = path?;
                let one = futures_util::stream::iter([Ok(path)]).boxed();
                let mut done: Vec<_> = this.inner.delete_stream(one).collect().await;
                late(done.remove(0)?, is_late)
            }
        };
        paths.then(each).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.list_with_offset(prefix, &Path::default())
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        offset: &Path,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let (this, inner) = (self.clone(), self.inner.list_with_offset(prefix, offset));
        let first = {
            let this = self.clone();
            futures_util::stream::once(
                async move { this.before().await.and_then(|is_late| late((), is_late)) },
            )
        };
        first
            .flat_map(move |begun| match begun {
                Err(error) => futures_util::stream::iter([Err(error)]).left_stream(),
                Ok(()) => futures_util::stream::iter([]).right_stream(),
            })
            .chain(inner.map(move |about| about.map(|about| this.shifted(about))))
            .boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
