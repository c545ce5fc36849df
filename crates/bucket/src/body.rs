//! Bodies that are read from a file, that end too early, or whose length is not told.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use hyper::body::{Body, Bytes, Frame, SizeHint};
use tokio::fs::File;
use tokio::io::{AsyncRead, ReadBuf};

/// What is read from a file in one go.
const READ: usize = 256 * 1024;

/// The next bytes of a body, skipping what is none; nothing at its end.
///
/// # Errors
/// Those of the body.
pub(crate) async fn next<B>(body: &mut Pin<Box<B>>) -> Result<Option<Bytes>, B::Error>
where
    B: Body<Data = Bytes>,
{
    loop {
        let frame = poll_fn(|context| body.as_mut().poll_frame(context)).await.transpose()?;
        match frame.map(Frame::into_data) {
            None => return Ok(None),
            Some(Ok(bytes)) => return Ok(Some(bytes)),
            Some(Err(_)) => {}
        }
    }
}

/// Some bytes of a file, from where it stands.
pub(crate) struct FileBody {
    file: File,
    left: u64,
}

impl FileBody {
    pub(crate) const fn new(file: File, left: u64) -> FileBody {
        FileBody { file, left }
    }
}

impl Body for FileBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let mut bytes = vec![0; READ.min(usize::try_from(self.left).unwrap_or(READ))];
        let mut buffer = ReadBuf::new(&mut bytes);
        if let Err(error) = ready!(Pin::new(&mut self.file).poll_read(context, &mut buffer)) {
            return Poll::Ready(Some(Err(error)));
        }
        let read = buffer.filled().len();
        if read == 0 {
            return Poll::Ready(Some(Err(io::ErrorKind::UnexpectedEof.into())));
        }
        bytes.truncate(read);
        self.left -= read as u64;
        Poll::Ready(Some(Ok(Frame::data(bytes.into()))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

/// A body that fails after so many bytes, whatever follows.
pub(crate) struct CutBody<B> {
    body: Pin<Box<B>>,
    left: u64,
}

impl<B> CutBody<B> {
    pub(crate) fn new(body: B, left: u64) -> CutBody<B> {
        CutBody { body: Box::pin(body), left }
    }
}

impl<B: Body<Data = Bytes>> Body for CutBody<B> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let cut = || io::Error::new(io::ErrorKind::ConnectionReset, "cut by a rule");
        if self.left == 0 {
            return Poll::Ready(Some(Err(cut())));
        }
        let frame = match ready!(self.body.as_mut().poll_frame(context)) {
            Some(Ok(frame)) => frame,
            Some(Err(_)) | None => return Poll::Ready(Some(Err(cut()))),
        };
        let Ok(mut bytes) = frame.into_data() else { return Poll::Ready(Some(Err(cut()))) };
        bytes.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.left -= bytes.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }

    /// That of the whole body, which is what its `Content-Length` says.
    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body that comes in chunks, of which no header tells the length. `s3s` refuses such uploads where they are not signed, as S3 does
/// (411, `MissingContentLength`). Here they are taken, so that a pipe into `curl -T -` can be measured: the length that is claimed is
/// used by nothing.
pub(crate) struct ChunkedBody<B>(Pin<Box<B>>);

impl<B> ChunkedBody<B> {
    pub(crate) fn new(body: B) -> ChunkedBody<B> {
        ChunkedBody(Box::pin(body))
    }
}

impl<B: Body> Body for ChunkedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.0.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::from(u32::MAX))
    }
}
