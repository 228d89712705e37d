//! Input files of traces, decompressed while they are read.

use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;

use flate2::bufread::GzDecoder;
use liblzma::read::XzDecoder;
use volary_engine::workload::WorkloadError;

use super::parquet::{self, ParquetLines};
use crate::files::Files;

/// Suffixes of plain and of compressed files.
pub(super) const PACKED: [&str; 4] = ["", ".xz", ".zst", ".gz"];

/// Opens a file.
pub(super) fn open(files: &Files, file: &Path) -> Result<Box<dyn BufRead>, WorkloadError> {
    let io = |source| WorkloadError::Io { file: file.to_owned(), source };
    files.stream(file).and_then(decompress).map_err(io)
}

/// The content of a file, decompressed if its first bytes say so, and of a Parquet file its rows in JSON. Damage is an
/// error of the kind `InvalidData`.
///
/// # Errors
/// When the first bytes cannot be read, or a Parquet file is damaged.
pub fn decompress(mut input: impl Read + 'static) -> io::Result<Box<dyn BufRead>> {
    let mut magic = Vec::new();
    input.by_ref().take(6).read_to_end(&mut magic)?;
    let whole = Cursor::new(magic.clone()).chain(input);
    let decoder: Box<dyn Read> = match magic.as_slice() {
        [0xfd, b'7', b'z', b'X', b'Z', 0] => Box::new(Decoder(XzDecoder::new_multi_decoder(whole))),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => Box::new(Decoder(zstd::stream::read::Decoder::new(whole)?)),
        [0x1f, 0x8b, ..] => Box::new(Decoder(GzMembers::new(BufReader::new(whole)))),
        _ => Box::new(whole),
    };
    let mut text = BufReader::with_capacity(1 << 16, decoder);
    // Spreadsheets write a byte order mark.
    if text.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        text.consume(BYTE_ORDER_MARK.len());
    }
    if text.fill_buf()?.starts_with(parquet::MAGIC) {
        return Ok(Box::new(BufReader::new(ParquetLines::new(text)?)));
    }
    Ok(Box::new(text))
}

/// The byte order mark, U+FEFF in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The content of all members of a gzip file. Zeros may follow, since tapes and some tools pad files; `gzip` accepts
/// them too.
struct GzMembers<R> {
    /// The current member; `None` between members and at the end.
    member: Option<GzDecoder<R>>,
    rest: Option<R>,
}

impl<R: BufRead> GzMembers<R> {
    fn new(file: R) -> Self {
        Self { member: Some(GzDecoder::new(file)), rest: None }
    }

    /// Begins the next member; returns false at the end.
    fn next_member(&mut self) -> io::Result<bool> {
        let Some(mut rest) = self.rest.take() else { return Ok(false) };
        loop {
            let bytes = rest.fill_buf()?;
            if bytes.is_empty() {
                return Ok(false);
            }
            let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
            if zeros == 0 {
                self.member = Some(GzDecoder::new(rest));
                return Ok(true);
            }
            rest.consume(zeros);
        }
    }
}

impl<R: BufRead> Read for GzMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some(member) = &mut self.member {
                let read = member.read(buffer)?;
                if read > 0 {
                    return Ok(read);
                }
                self.rest = self.member.take().map(GzDecoder::into_inner);
            }
            if !self.next_member()? {
                return Ok(0);
            }
        }
    }
}

/// A decoder that reports damage as an error of the kind `InvalidData`.
struct Decoder<R>(R);

impl<R: Read> Read for Decoder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Decoders report damage as one of these kinds; a failing disk reports other kinds.
        let damage = [ErrorKind::UnexpectedEof, ErrorKind::InvalidInput, ErrorKind::Other];
        self.0.read(buffer).map_err(|error| {
            if damage.contains(&error.kind()) {
                io::Error::new(ErrorKind::InvalidData, error.to_string())
            } else {
                error
            }
        })
    }
}
