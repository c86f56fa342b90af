//! Packing: MessagePack arrays in a zstd frame with a checksum (the specification is codec/pack.py).

use std::cell::RefCell;
use std::io::Cursor;

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use rmp::{decode, encode};
use zstd::bulk::{Compressor, Decompressor};
use zstd::zstd_safe::{self, CParameter};

const ZSTD: u8 = 1;
const RECORDS_LEVEL: i32 = 1;
const PAYLOADS_LEVEL: i32 = -1;
const SMALL: usize = 16 * 1024;
const SMALL_HASH_LOG: u32 = 12;
/// A frame that claims to be larger is left to Python, which handles a lack of memory.
const LARGE: u64 = 1 << 28;

type Parts<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);
type Blobs<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// For small inputs, and for the others.
type Kept = RefCell<[Option<Compressor<'static>>; 2]>;

thread_local! {
    static COMPRESSORS: Kept = const { RefCell::new([None, None]) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

pub fn zstd_version() -> (u32, u32, u32) {
    let number = zstd_safe::version_number();
    (number / 10_000, number / 100 % 100, number % 100)
}

/// Records and payloads of a commit, each as it is stored.
#[pyfunction]
pub fn pack<'py>(py: Python<'py>, records: &Bound<'py, PyAny>, payloads: &Bound<'py, PyAny>) -> PyResult<Blobs<'py>> {
    let records = records.try_iter()?.map(|each| parts_of(&each?)).collect::<PyResult<Vec<_>>>()?;
    let triples: Vec<_> = records.iter().map(|(a, b, c)| [a.as_bytes(), b.as_bytes(), c.as_bytes()]).collect();
    let payloads = payloads.try_iter()?.map(|each| pair_of(each?)).collect::<PyResult<Vec<_>>>()?;
    let pairs: Vec<_> = payloads.iter().map(|(a, b)| [a.as_bytes(), b.as_bytes()]).collect();
    let size = size_of(&triples) + size_of(&pairs);
    let (first, second) = crate::apart(py, 4 * size, || {
        let payloads = || compress(PAYLOADS_LEVEL, &pairs);
        let records = compress(RECORDS_LEVEL, &triples);
        (records, if pairs.is_empty() { Ok(Vec::new()) } else { payloads() })
    });
    Ok((PyBytes::new(py, &first?), PyBytes::new(py, &second?)))
}

/// Unpacks records as triples, and payloads as a tuple of pairs.
#[pyfunction]
pub fn unpack<'py>(
    py: Python<'py>,
    records: &[u8],
    payloads: &[u8],
) -> PyResult<(Vec<Parts<'py>>, Bound<'py, PyTuple>)> {
    let (first, second) = crate::apart(py, 3 * (records.len() + payloads.len()), || {
        (decompress(records), if payloads.is_empty() { Ok(Vec::new()) } else { decompress(payloads) })
    });
    let (first, second) = (first?, second?);
    let triples = split::<3>(&first)?;
    let pairs = if payloads.is_empty() { Vec::new() } else { split::<2>(&second)? };
    let bytes = |part: &[u8]| PyBytes::new(py, part);
    let triples = triples.iter().map(|[a, b, c]| (bytes(a), bytes(b), bytes(c))).collect();
    Ok((triples, PyTuple::new(py, pairs.iter().map(|[a, b]| (bytes(a), bytes(b))))?))
}

/// Header, salt and body of a record.
pub fn parts_of<'py>(record: &Bound<'py, PyAny>) -> PyResult<Parts<'py>> {
    let py = record.py();
    let part = |name| -> PyResult<Bound<'py, PyBytes>> { Ok(record.getattr(name)?.cast_into_exact()?) };
    Ok((part(intern!(py, "header"))?, part(intern!(py, "salt"))?, part(intern!(py, "body"))?))
}

fn pair_of<'py>(pair: Bound<'py, PyAny>) -> PyResult<Blobs<'py>> {
    let pair = pair.cast_into_exact::<PyTuple>()?;
    if pair.len() != 2 {
        return Err(PyValueError::new_err("a payload is a pair"));
    }
    Ok((pair.get_item(0)?.cast_into_exact()?, pair.get_item(1)?.cast_into_exact()?))
}

fn size_of<const N: usize>(rows: &[[&[u8]; N]]) -> usize {
    rows.iter().flatten().map(|part| part.len() + 5).sum::<usize>() + rows.len() + 5
}

fn compress<const N: usize>(level: i32, rows: &[[&[u8]; N]]) -> PyResult<Vec<u8>> {
    let mut plain = Vec::with_capacity(size_of(rows));
    let refuse = |_| PyValueError::new_err("too much for one commit");
    encode::write_array_len(&mut plain, u32::try_from(rows.len())?).map_err(refuse)?;
    for row in rows {
        encode::write_array_len(&mut plain, N as u32).map_err(refuse)?;
        for part in row {
            encode::write_bin_len(&mut plain, u32::try_from(part.len())?).map_err(refuse)?;
            plain.extend_from_slice(part);
        }
    }
    // A context costs more to make than to use. Both levels share one: its memory is in the cache for the second.
    COMPRESSORS.with_borrow_mut(|[small, large]| {
        let is_small = plain.len() <= SMALL;
        let kept = if is_small { small } else { large };
        let compressor = match kept {
            Some(compressor) => compressor,
            None => {
                let mut fresh = Compressor::new(level)?;
                fresh.include_checksum(true)?;
                if is_small {
                    fresh.set_parameter(CParameter::HashLog(SMALL_HASH_LOG))?;
                }
                kept.insert(fresh)
            }
        };
        compressor.set_parameter(CParameter::CompressionLevel(level))?;
        let mut packed = Vec::with_capacity(1 + zstd_safe::compress_bound(plain.len()));
        packed.push(ZSTD);
        let mut packed = Cursor::new(packed);
        packed.set_position(1);
        compressor.compress_to_buffer(&plain, &mut packed)?;
        Ok(packed.into_inner())
    })
}

fn decompress(packed: &[u8]) -> PyResult<Vec<u8>> {
    let refuse = || PyValueError::new_err("not a wakelog frame");
    let frame = packed.strip_prefix(&[ZSTD]).ok_or_else(refuse)?;
    let size = zstd_safe::get_frame_content_size(frame).ok().flatten().filter(|size| *size <= LARGE);
    let size = size.ok_or_else(refuse)? as usize;
    DECOMPRESSOR.with_borrow_mut(|kept| {
        let decompressor = match kept {
            Some(decompressor) => decompressor,
            None => kept.insert(Decompressor::new()?),
        };
        let plain = decompressor.decompress(frame, size)?;
        if plain.len() == size {
            Ok(plain)
        } else {
            Err(refuse())
        }
    })
}

/// An array of arrays of `N` byte strings, and nothing after it.
fn split<const N: usize>(mut data: &[u8]) -> PyResult<Vec<[&[u8]; N]>> {
    let refuse = || PyValueError::new_err("not what a commit holds");
    let count = decode::read_array_len(&mut data).map_err(|_| refuse())? as usize;
    let mut rows = Vec::with_capacity(count.min(data.len()));
    for _ in 0..count {
        if decode::read_array_len(&mut data).map_err(|_| refuse())? as usize != N {
            return Err(refuse());
        }
        let mut row: [&[u8]; N] = [&[]; N];
        for part in &mut row {
            let size = decode::read_bin_len(&mut data).map_err(|_| refuse())? as usize;
            (*part, data) = data.split_at_checked(size).ok_or_else(refuse)?;
        }
        rows.push(row);
    }
    if data.is_empty() {
        Ok(rows)
    } else {
        Err(refuse())
    }
}
