//! Sealing: from encoded events to chained records (the specification is codec/chain.py).

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyInt, PyList, PyString, PyTuple};
use sha2::{Digest, Sha256};

pub const SALT_SIZE: usize = 16;
pub const HEX: &[u8; 16] = b"0123456789abcdef";

/// The parts of a record, borrowed from Python. `head` is the header up to the body's hash, `tail` the rest.
struct Item<'a> {
    head: Vec<u8>,
    tail: Vec<u8>,
    event: &'a [u8],
    delta: &'a [u8],
}

/// Header and body of a record.
type Pair = (Vec<u8>, Vec<u8>);
type Sealed<'py> = (Bound<'py, PyList>, Bound<'py, PyBytes>, usize);

/// The records of a commit as (header, salt, body), the chain's hash after them, and the size of headers and bodies.
#[pyfunction]
pub fn seal_records<'py>(
    py: Python<'py>,
    prev: &[u8],
    first: i64,
    at: i64,
    salts: &[u8],
    items: &Bound<'py, PyList>,
) -> PyResult<Sealed<'py>> {
    if salts.len() != SALT_SIZE * items.len() {
        return Err(PyValueError::new_err("a record needs a salt"));
    }
    let tuples = items.iter().map(|item| Ok(item.cast_into_exact::<PyTuple>()?)).collect::<PyResult<Vec<_>>>()?;
    let parts = tuples.iter().map(bytes_of).collect::<PyResult<Vec<_>>>()?;
    let mut sealing = Vec::with_capacity(tuples.len());
    for ((seq, item), (event, delta)) in (first..).zip(&tuples).zip(&parts) {
        let (head, tail) = header_of(py, seq, at, item)?;
        sealing.push(Item { head, tail, event: event.as_bytes(), delta: delta.as_bytes() });
    }
    let size = sealing.iter().map(|item| item.event.len() + item.delta.len()).sum();
    let (done, chain) = crate::apart(py, size, || seal_all(prev, salts, sealing));
    let records = PyList::empty(py);
    for ((header, body), salt) in done.iter().zip(salts.chunks(SALT_SIZE)) {
        records.append((PyBytes::new(py, header), PyBytes::new(py, salt), PyBytes::new(py, body)))?;
    }
    let size = done.iter().map(|(header, body)| header.len() + body.len()).sum();
    Ok((records, PyBytes::new(py, &chain), size))
}

/// The body's hash of each record that has a salt, and the chain's hash after each.
#[pyfunction]
pub fn hash_records<'py>(
    py: Python<'py>,
    prev: &[u8],
    records: &Bound<'py, PyAny>,
) -> PyResult<Vec<(Bound<'py, PyString>, Bound<'py, PyBytes>)>> {
    let mut chain = prev.to_vec();
    let mut out = Vec::new();
    for record in records.try_iter()? {
        let record = record?;
        let (header, salt, body) = crate::pack::parts_of(&record)?;
        let hash = if salt.as_bytes().is_empty() {
            intern!(py, "").clone()
        } else {
            let digest = Sha256::new().chain_update(salt.as_bytes()).chain_update(body.as_bytes()).finalize();
            let mut hex = String::with_capacity(64);
            hex.extend(digest.iter().flat_map(|b| [b >> 4, b & 15]).map(|n| HEX[n as usize] as char));
            PyString::new(py, &hex)
        };
        chain = Sha256::new().chain_update(&chain).chain_update(header.as_bytes()).finalize().to_vec();
        out.push((hash, PyBytes::new(py, &chain)));
    }
    Ok(out)
}

/// The chain's hash after each record of a commit, if every header is of the usual form and has the seq and the hash that
/// its record should have. Else None: what it means is for Python to say.
#[pyfunction]
pub fn check_records<'py>(
    py: Python<'py>,
    prev: &[u8],
    first: i64,
    records: &Bound<'py, PyTuple>,
) -> PyResult<Option<Vec<Bound<'py, PyBytes>>>> {
    let mut chain = prev.to_vec();
    let mut out = Vec::with_capacity(records.len());
    for (seq, record) in (first..).zip(records.iter()) {
        let (header, salt, body) = crate::pack::parts_of(&record)?;
        let mut digest = Vec::with_capacity(64);
        put_hex(&mut digest, &Sha256::new().chain_update(salt.as_bytes()).chain_update(body.as_bytes()).finalize());
        if salt.as_bytes().is_empty() || usual_hash(header.as_bytes(), seq) != Some(&digest) {
            return Ok(None);
        }
        chain = Sha256::new().chain_update(&chain).chain_update(header.as_bytes()).finalize().to_vec();
        out.push(PyBytes::new(py, &chain));
    }
    Ok(Some(out))
}

/// The body's hash in a header as `begin_header` starts it, with nothing but turn, attempt, actor and cause after it.
fn usual_hash(header: &[u8], seq: i64) -> Option<&[u8]> {
    let rest = header.strip_prefix(b"{\"seq\":")?.strip_prefix(seq.to_string().as_bytes())?;
    let rest = skip_text(rest.strip_prefix(b",\"kind\":")?)?;
    let rest = skip_number(rest.strip_prefix(b",\"at\":")?)?.strip_prefix(b",\"body_hash\":\"")?;
    let (hash, mut rest) = rest.split_at_checked(64)?;
    rest = rest.strip_prefix(b"\"")?;
    type Skip = fn(&[u8]) -> Option<&[u8]>;
    let members: [(&[u8], Skip); 4] = [
        (b",\"turn\":", skip_number),
        (b",\"attempt\":", skip_number),
        (b",\"actor\":", skip_text),
        (b",\"cause\":", skip_number),
    ];
    for (name, skip) in members {
        if let Some(value) = rest.strip_prefix(name) {
            rest = skip(value)?;
        }
    }
    (rest == b"}").then_some(hash)
}

/// What follows a text without escapes.
fn skip_text(json: &[u8]) -> Option<&[u8]> {
    let text = json.strip_prefix(b"\"")?;
    let size = text.iter().position(|byte| is_escaped(*byte) || !byte.is_ascii())?;
    text[size..].strip_prefix(b"\"")
}

/// What follows a number that fits into 64 bits.
fn skip_number(json: &[u8]) -> Option<&[u8]> {
    let size = json.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_sound = (1..=18).contains(&size) && (size == 1 || json[0] != b'0');
    is_sound.then(|| &json[size..])
}

fn seal_all(prev: &[u8], salts: &[u8], items: Vec<Item<'_>>) -> (Vec<Pair>, Vec<u8>) {
    let mut chain = prev.to_vec();
    let mut done = Vec::with_capacity(items.len());
    for (item, salt) in items.into_iter().zip(salts.chunks(SALT_SIZE)) {
        let body = join_body(item.event, item.delta);
        let digest = Sha256::new().chain_update(salt).chain_update(&body).finalize();
        let mut header = item.head;
        put_hex(&mut header, &digest);
        header.extend_from_slice(&item.tail);
        chain = Sha256::new().chain_update(&chain).chain_update(&header).finalize().to_vec();
        done.push((header, body));
    }
    (done, chain)
}

pub fn join_body(event: &[u8], delta: &[u8]) -> Vec<u8> {
    if delta.is_empty() {
        return event.to_vec();
    }
    let open = if event == b"{}" { b"{".as_slice() } else { &event[..event.len().saturating_sub(1)] };
    let comma: &[u8] = if event == b"{}" { b"" } else { b"," };
    [open, comma, b"\"delta\":", delta, b"}"].concat()
}

fn bytes_of<'py>(item: &Bound<'py, PyTuple>) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    if item.len() != 10 {
        return Err(PyValueError::new_err("an item has ten parts"));
    }
    Ok((item.get_item(8)?.cast_into_exact()?, item.get_item(9)?.cast_into_exact()?))
}

/// The members of a header before and after the body's hash, in the order and with the omissions of `Header`.
fn header_of(py: Python<'_>, seq: i64, at: i64, item: &Bound<'_, PyTuple>) -> PyResult<(Vec<u8>, Vec<u8>)> {
    let mut head = Vec::with_capacity(192);
    begin_header(&mut head, seq, item.get_item(0)?.cast_exact::<PyString>()?.to_str()?, at);
    let mut tail = b"\"".to_vec();
    put_number(&mut tail, b",\"turn\":", &item.get_item(1)?, 0)?;
    put_number(&mut tail, b",\"attempt\":", &item.get_item(2)?, 1)?;
    put_choice(&mut tail, b",\"actor\":", &item.get_item(3)?, intern!(py, "agent"))?;
    put_number(&mut tail, b",\"cause\":", &item.get_item(4)?, 0)?;
    put_ranges(&mut tail, item.get_item(5)?.cast_exact::<PyTuple>()?)?;
    put_choice(&mut tail, b",\"source\":", &item.get_item(6)?, intern!(py, ""))?;
    put_choice(&mut tail, b",\"trust\":", &item.get_item(7)?, intern!(py, "trusted"))?;
    tail.push(b'}');
    Ok((head, tail))
}

/// The members of a header up to the body's hash.
pub fn begin_header(out: &mut Vec<u8>, seq: i64, kind: &str, at: i64) {
    out.extend_from_slice(b"{\"seq\":");
    put_int(out, seq);
    out.extend_from_slice(b",\"kind\":");
    put_text(out, kind);
    out.extend_from_slice(b",\"at\":");
    put_int(out, at);
    out.extend_from_slice(b",\"body_hash\":\"");
}

fn put_number(out: &mut Vec<u8>, name: &[u8], value: &Bound<'_, PyAny>, default: i64) -> PyResult<()> {
    put_unless(out, name, value.cast_exact::<PyInt>()?.extract()?, default);
    Ok(())
}

pub fn put_unless(out: &mut Vec<u8>, name: &[u8], value: i64, default: i64) {
    if value != default {
        out.extend_from_slice(name);
        put_int(out, value);
    }
}

pub fn put_hex(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend(bytes.iter().flat_map(|b| [HEX[(b >> 4) as usize], HEX[(b & 15) as usize]]));
}

/// Left out when it is the default object itself. An equal text in another object is written, like msgspec does.
pub fn put_choice(
    out: &mut Vec<u8>,
    name: &[u8],
    value: &Bound<'_, PyAny>,
    default: &Bound<'_, PyString>,
) -> PyResult<()> {
    if !value.is(default) {
        out.extend_from_slice(name);
        put_text(out, value.cast_exact::<PyString>()?.to_str()?);
    }
    Ok(())
}

pub fn put_ranges(out: &mut Vec<u8>, ranges: &Bound<'_, PyTuple>) -> PyResult<()> {
    if ranges.is_empty() {
        return Ok(());
    }
    out.extend_from_slice(b",\"derived_from\":");
    let mut open = b'[';
    for range in ranges.iter() {
        let range = range.cast_into_exact::<PyTuple>()?;
        if range.len() != 2 {
            return Err(PyValueError::new_err("a range has two ends"));
        }
        let (first, last) = (range.get_item(0)?, range.get_item(1)?);
        out.extend_from_slice(&[open, b'[']);
        put_int(out, first.cast_exact::<PyInt>()?.extract()?);
        out.push(b',');
        put_int(out, last.cast_exact::<PyInt>()?.extract()?);
        out.push(b']');
        open = b',';
    }
    out.push(b']');
    Ok(())
}

pub fn put_int(out: &mut Vec<u8>, value: i64) {
    out.extend_from_slice(value.to_string().as_bytes());
}

/// A JSON string as msgspec writes it.
pub fn put_text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    // Most pieces have nothing to escape, and checking a whole piece takes a few wide instructions.
    for piece in text.as_bytes().chunks(32) {
        if piece.iter().fold(false, |found, byte| found | is_escaped(*byte)) {
            piece.iter().for_each(|byte| put_byte(out, *byte));
        } else {
            out.extend_from_slice(piece);
        }
    }
    out.push(b'"');
}

fn is_escaped(byte: u8) -> bool {
    byte < 32 || byte == b'"' || byte == b'\\'
}

fn put_byte(out: &mut Vec<u8>, byte: u8) {
    match byte {
        b'"' => out.extend_from_slice(b"\\\""),
        b'\\' => out.extend_from_slice(b"\\\\"),
        8 => out.extend_from_slice(b"\\b"),
        9 => out.extend_from_slice(b"\\t"),
        10 => out.extend_from_slice(b"\\n"),
        12 => out.extend_from_slice(b"\\f"),
        13 => out.extend_from_slice(b"\\r"),
        0..=31 => {
            out.extend_from_slice(b"\\u00");
            out.extend_from_slice(&[HEX[(byte >> 4) as usize], HEX[(byte & 15) as usize]]);
        }
        _ => out.push(byte),
    }
}
