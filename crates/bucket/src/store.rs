//! What the operations of S3 do with the folder.

use std::fs::Metadata;
use std::io::{self, ErrorKind, Seek, SeekFrom};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hyper::StatusCode;
use s3s::dto::{
    CommonPrefix, CreateBucketInput, CreateBucketOutput, DeleteObjectInput, DeleteObjectOutput,
    DeleteObjectsInput, DeleteObjectsOutput, DeletedObject, ETag, ETagCondition, GetObjectInput,
    GetObjectOutput, HeadBucketInput, HeadBucketOutput, HeadObjectInput, HeadObjectOutput,
    ListObjectsV2Input, ListObjectsV2Output, Object, PutObjectInput, PutObjectOutput, StreamingBlob,
    Timestamp,
};
use s3s::{Body, S3, S3Error, S3ErrorCode, S3Request, S3Response, S3Result, s3_error};
use tokio::task::spawn_blocking;

use crate::body::{self, FileBody};
use crate::faults::Faults;
use crate::folder::{Folder, Unfinished, tag};
use crate::listing::{Asked, list};

/// What of a body is gathered before it is written: a smaller object is one task of the pool of threads that wait for the disk.
const GATHERED: usize = 512 * 1024;

/// The most entries of a list in one answer (Amazon S3, `ListObjectsV2`, `max-keys`).
const MOST_ENTRIES: usize = 1000;

/// The operations, on one folder of buckets.
pub(crate) struct Store {
    folder: Arc<Folder>,
    faults: Faults,
}

impl Store {
    pub(crate) fn new(folder: Folder, faults: Faults) -> Store {
        Store { folder: Arc::new(folder), faults }
    }

    /// Does what may wait for the disk.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Folder) -> io::Result<T> + Send + 'static,
    ) -> S3Result<T> {
        let folder = Arc::clone(&self.folder);
        spawn_blocking(move || work(&folder)).await.map_err(S3Error::internal_error)?.map_err(failure)
    }

    /// When the file was written, by the store's clock, which rules may set wrong.
    fn modified(&self, metadata: &Metadata) -> Timestamp {
        shifted(metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH), self.faults.clock_seconds())
    }

    /// Takes a whole body, and gives it its name.
    async fn receive(&self, input: PutObjectInput) -> S3Result<Metadata> {
        let create_only = match input.if_none_match {
            None => false,
            Some(ETagCondition::Any) => true,
            Some(ETagCondition::ETag(_)) => return Err(s3_error!(NotImplemented)),
        };
        let (bucket, key) = (input.bucket, input.key);
        let mut body = Box::pin(Body::from(input.body.ok_or_else(|| s3_error!(IncompleteBody))?));
        let mut unfinished = None;
        loop {
            let (gathered, ended) = gather(&mut body).await?;
            if !ended {
                unfinished = Some(self.on_disk(move |folder| add(folder, unfinished, &gathered)).await?);
                continue;
            }
            let last = move |folder: &Folder| {
                let path = folder.file(&bucket, &key)?;
                add(folder, unfinished, &gathered)?.publish(&path, create_only)
            };
            return self.on_disk(last).await;
        }
    }
}

/// A time by a clock that is wrong by so many seconds.
pub(crate) fn shifted(time: SystemTime, seconds: i64) -> Timestamp {
    let shift = Duration::from_secs(seconds.unsigned_abs());
    let shifted = if seconds < 0 { time.checked_sub(shift) } else { time.checked_add(shift) };
    Timestamp::from(shifted.unwrap_or(SystemTime::UNIX_EPOCH))
}

/// The next bytes of a body, and whether they are the last.
async fn gather(body: &mut Pin<Box<Body>>) -> S3Result<(Vec<u8>, bool)> {
    let mut gathered = Vec::new();
    while gathered.len() < GATHERED {
        match body::next(body).await {
            Ok(Some(bytes)) => gathered.extend_from_slice(&bytes),
            Ok(None) => return Ok((gathered, true)),
            Err(error) => return Err(S3Error::with_source(S3ErrorCode::IncompleteBody, error)),
        }
    }
    Ok((gathered, false))
}

fn add(folder: &Folder, unfinished: Option<Unfinished>, bytes: &[u8]) -> io::Result<Unfinished> {
    let mut file = unfinished.map_or_else(|| folder.begin(), Ok)?;
    file.write(bytes)?;
    Ok(file)
}

/// The answer to an error of the file system.
fn failure(error: io::Error) -> S3Error {
    let code = match error.kind() {
        ErrorKind::NotFound => S3ErrorCode::NoSuchBucket,
        ErrorKind::AlreadyExists => S3ErrorCode::PreconditionFailed,
        ErrorKind::InvalidFilename => S3ErrorCode::KeyTooLongError,
        ErrorKind::InvalidInput | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
            S3ErrorCode::InvalidArgument
        }
        _ => S3ErrorCode::InternalError,
    };
    let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    let mut failure = S3Error::with_message(code, error.to_string());
    if full {
        failure.set_status_code(StatusCode::INSUFFICIENT_STORAGE);
    }
    failure
}

/// What an object that is not there is answered.
fn missing(error: io::Error) -> io::Result<Option<(std::fs::File, Metadata)>> {
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
        _ => Err(error),
    }
}

fn opened(path: &PathBuf) -> io::Result<Option<(std::fs::File, Metadata)>> {
    let opened = std::fs::File::open(path).and_then(|file| {
        let metadata = file.metadata()?;
        Ok((file, metadata))
    });
    match opened {
        Ok((_, metadata)) if !metadata.is_file() => Ok(None),
        Ok(found) => Ok(Some(found)),
        Err(error) => missing(error),
    }
}

/// Whether the conditions of a read hold.
fn check(
    metadata: &Metadata,
    wanted: Option<&ETagCondition>,
    unwanted: Option<&ETagCondition>,
) -> S3Result<()> {
    let tag = ETag::Strong(tag(metadata));
    let is = |condition: &ETagCondition| match condition {
        ETagCondition::Any => true,
        ETagCondition::ETag(other) => tag.weak_cmp(other),
    };
    if wanted.is_some_and(|wanted| !is(wanted)) {
        return Err(s3_error!(PreconditionFailed));
    }
    if unwanted.is_some_and(is) {
        return Err(s3_error!(NotModified));
    }
    Ok(())
}

fn signed(length: u64) -> S3Result<i64> {
    i64::try_from(length).map_err(S3Error::internal_error)
}

#[async_trait::async_trait]
impl S3 for Store {
    async fn create_bucket(
        &self,
        request: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let name = request.input.bucket;
        if !self.on_disk(move |folder| folder.make_bucket(&name)).await? {
            return Err(s3_error!(BucketAlreadyOwnedByYou));
        }
        Ok(S3Response::new(CreateBucketOutput::default()))
    }

    async fn head_bucket(
        &self,
        request: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        let name = request.input.bucket;
        self.on_disk(move |folder| folder.bucket(&name)).await?;
        Ok(S3Response::new(HeadBucketOutput::default()))
    }

    async fn put_object(&self, request: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        let input = request.input;
        let unchecked = [
            input.content_md5.is_some(),
            input.if_match.is_some(),
            input.checksum_crc32.is_some(),
            input.checksum_crc32c.is_some(),
            input.checksum_crc64nvme.is_some(),
            input.checksum_sha1.is_some(),
            input.checksum_sha256.is_some(),
            request.trailing_headers.is_some(),
        ];
        if unchecked.contains(&true) {
            return Err(s3_error!(NotImplemented, "no condition but If-None-Match, no checksum but SigV4's"));
        }
        let metadata = self.receive(input).await?;
        let output = PutObjectOutput { e_tag: Some(ETag::Strong(tag(&metadata))), ..Default::default() };
        Ok(S3Response::new(output))
    }

    async fn get_object(&self, request: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        let GetObjectInput { bucket, key, range, if_match, if_none_match, .. } = request.input;
        let found = self.on_disk(move |folder| opened(&folder.file(&bucket, &key)?)).await?;
        let (mut file, metadata) = found.ok_or_else(|| s3_error!(NoSuchKey))?;
        check(&metadata, if_match.as_ref(), if_none_match.as_ref())?;
        let whole = metadata.len();
        let part = range.map_or(Ok(0..whole), |range| range.check(whole))?;
        let length = part.end - part.start;
        let content_range =
            range.map(|_| format!("bytes {}-{}/{whole}", part.start, part.end.saturating_sub(1)));
        // Within the file's cache of its position: no wait.
        file.seek(SeekFrom::Start(part.start)).map_err(failure)?;
        let body = Body::http_body(FileBody::new(tokio::fs::File::from_std(file), length));
        let output = GetObjectOutput {
            body: Some(StreamingBlob::from(body)),
            content_length: Some(signed(length)?),
            content_range,
            accept_ranges: Some("bytes".to_owned()),
            last_modified: Some(self.modified(&metadata)),
            e_tag: Some(ETag::Strong(tag(&metadata))),
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let HeadObjectInput { bucket, key, if_match, if_none_match, .. } = request.input;
        let found = self.on_disk(move |folder| opened(&folder.file(&bucket, &key)?)).await?;
        let (_, metadata) = found.ok_or_else(|| s3_error!(NoSuchKey))?;
        check(&metadata, if_match.as_ref(), if_none_match.as_ref())?;
        let output = HeadObjectOutput {
            content_length: Some(signed(metadata.len())?),
            accept_ranges: Some("bytes".to_owned()),
            last_modified: Some(self.modified(&metadata)),
            e_tag: Some(ETag::Strong(tag(&metadata))),
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let DeleteObjectInput { bucket, key, .. } = request.input;
        self.on_disk(move |folder| folder.remove(&bucket, &key)).await?;
        Ok(S3Response::with_status(DeleteObjectOutput::default(), StatusCode::NO_CONTENT))
    }

    async fn delete_objects(
        &self,
        request: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let DeleteObjectsInput { bucket, delete, .. } = request.input;
        let keys: Vec<String> = delete.objects.into_iter().map(|object| object.key).collect();
        let remove =
            move |folder: &Folder| keys.iter().try_for_each(|key| folder.remove(&bucket, key)).map(|()| keys);
        let removed = self.on_disk(remove).await?;
        let deleted =
            removed.into_iter().map(|key| DeletedObject { key: Some(key), ..Default::default() }).collect();
        let quiet = delete.quiet == Some(true);
        let output = DeleteObjectsOutput { deleted: (!quiet).then_some(deleted), ..Default::default() };
        Ok(S3Response::new(output))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        if input.delimiter.as_deref().is_some_and(|delimiter| delimiter != "/") {
            return Err(s3_error!(NotImplemented, "only / as the delimiter"));
        }
        let most = input.max_keys.and_then(|most| usize::try_from(most).ok());
        let asked = Asked {
            prefix: input.prefix.clone().unwrap_or_default(),
            grouped: input.delimiter.is_some(),
            after: input.continuation_token.clone().max(input.start_after.clone()),
            most: most.unwrap_or(MOST_ENTRIES).min(MOST_ENTRIES),
        };
        let bucket = input.bucket.clone();
        let page = self.on_disk(move |folder| list(&folder.bucket(&bucket)?, &asked)).await?;
        let contents = page.objects.into_iter().map(|(key, metadata)| {
            Ok(Object {
                key: Some(key),
                size: Some(signed(metadata.len())?),
                last_modified: Some(self.modified(&metadata)),
                e_tag: Some(ETag::Strong(tag(&metadata))),
                ..Default::default()
            })
        });
        let contents = contents.collect::<S3Result<Vec<_>>>()?;
        let groups: Vec<_> =
            page.groups.into_iter().map(|group| CommonPrefix { prefix: Some(group) }).collect();
        let output = ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: input.prefix,
            delimiter: input.delimiter,
            max_keys: input.max_keys,
            key_count: i32::try_from(contents.len() + groups.len()).ok(),
            continuation_token: input.continuation_token,
            start_after: input.start_after,
            is_truncated: Some(page.next.is_some()),
            next_continuation_token: page.next,
            contents: Some(contents),
            common_prefixes: Some(groups),
            ..Default::default()
        };
        Ok(S3Response::new(output))
    }
}
