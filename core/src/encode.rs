//! Encoding: from events to the JSON of their bodies and to payloads (the specification is codec/records.py).
//!
//! Only values of exactly the declared types are encoded here, so there is no need to decode the bytes as a check.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple, PyType};
use sha2::{Digest, Sha256};

use crate::chain::{put_int, put_text, HEX};
use crate::values::{is_reserved, DEPTH_MAX, INT_MAX};

const INLINE_MAX: usize = 512;

type Encoded<'py> = (Bound<'py, PyBytes>, Bound<'py, PyDict>);

/// The type of a field, by the codes of `_shape_of`.
enum Holds {
    Text,
    Flag,
    Number,
    Choice(Vec<String>),
    Texts,
    Object,
    Payload,
    Struct(Py<PyType>, Vec<Field>),
    /// Only its default.
    Default,
}

struct Field {
    name: Py<PyString>,
    /// The name as JSON, with its colon.
    key: Vec<u8>,
    default: Py<PyAny>,
    holds: Holds,
}

/// The events that can be encoded here, by type.
#[pyclass(frozen)]
pub struct Encoder {
    shapes: HashMap<usize, (Py<PyType>, Vec<Field>)>,
}

#[pymethods]
impl Encoder {
    /// `shapes` maps a type to its fields in order: name, default, type code, details of the type.
    #[new]
    fn new(shapes: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut known = HashMap::new();
        for (cls, fields) in shapes.iter() {
            let cls = cls.cast_into::<PyType>()?;
            known.insert(cls.as_ptr() as usize, (cls.clone().unbind(), fields_of(&fields)?));
        }
        Ok(Encoder { shapes: known })
    }

    /// For each event its body and its payloads (SHA-256 and content); None where Python has to encode it.
    fn encode<'py>(&self, py: Python<'py>, events: &Bound<'py, PyList>) -> PyResult<Vec<Option<Encoded<'py>>>> {
        events.iter().map(|event| self.encode_one(py, &event)).collect()
    }
}

impl Encoder {
    fn encode_one<'py>(&self, py: Python<'py>, event: &Bound<'py, PyAny>) -> PyResult<Option<Encoded<'py>>> {
        let Some((_, fields)) = self.shapes.get(&(event.get_type().as_ptr() as usize)) else { return Ok(None) };
        let (mut out, payloads) = (Vec::with_capacity(512), PyDict::new(py));
        if !put_struct(py, &mut out, event, fields, &payloads)? {
            return Ok(None);
        }
        Ok(Some((PyBytes::new(py, &out), payloads)))
    }
}

fn fields_of(fields: &Bound<'_, PyAny>) -> PyResult<Vec<Field>> {
    let mut out = Vec::new();
    for field in fields.try_iter()? {
        let (name, default, code, more): (Bound<'_, PyString>, Py<PyAny>, u8, Bound<'_, PyAny>) = field?.extract()?;
        let mut key = Vec::new();
        put_text(&mut key, name.to_str()?);
        key.push(b':');
        let holds = match code {
            0 => Holds::Text,
            1 => Holds::Flag,
            2 => Holds::Number,
            3 => Holds::Choice(more.extract()?),
            4 => Holds::Texts,
            5 => Holds::Object,
            6 => Holds::Payload,
            7 => {
                let (cls, fields): (Bound<'_, PyType>, Bound<'_, PyAny>) = more.extract()?;
                Holds::Struct(cls.unbind(), fields_of(&fields)?)
            }
            8 => Holds::Default,
            _ => return Err(PyValueError::new_err("no such field")),
        };
        out.push(Field { name: name.unbind(), key, default, holds });
    }
    Ok(out)
}

/// Writes all fields but defaults, like msgspec. False when Python has to encode it.
fn put_struct<'py>(
    py: Python<'py>,
    out: &mut Vec<u8>,
    value: &Bound<'py, PyAny>,
    fields: &[Field],
    payloads: &Bound<'py, PyDict>,
) -> PyResult<bool> {
    out.push(b'{');
    let start = out.len();
    for field in fields {
        let held = value.getattr(field.name.bind(py))?;
        if held.is(&field.default) {
            continue; // the default object itself; an equal value in another object is written, like msgspec does
        }
        if matches!(field.holds, Holds::Object | Holds::Default) && is_empty_dict(&held) {
            continue; // a default that is made anew for each event
        }
        if out.len() > start {
            out.push(b',');
        }
        out.extend_from_slice(&field.key);
        let is_put = match &field.holds {
            Holds::Text => put_str(out, &held),
            Holds::Flag => put_flag(out, &held),
            Holds::Number => put_number(out, &held),
            Holds::Choice(choices) => match held.cast_exact::<PyString>() {
                Ok(text) => {
                    text.to_str().is_ok_and(|text| choices.iter().any(|each| each == text)) && put_str(out, &held)
                }
                Err(_) => false,
            },
            Holds::Texts => match held.cast_exact::<PyTuple>() {
                Ok(texts) => put_items(out, texts.iter(), put_str),
                Err(_) => false,
            },
            Holds::Object => held.cast_exact::<PyDict>().is_ok() && put_value(out, &held, 0),
            Holds::Payload => put_payload(py, out, &held, payloads)?,
            Holds::Struct(cls, fields) => {
                held.get_type().is(cls.bind(py)) && put_struct(py, out, &held, fields, payloads)?
            }
            Holds::Default => false,
        };
        if !is_put {
            return Ok(false);
        }
    }
    out.push(b'}');
    Ok(true)
}

fn is_empty_dict(value: &Bound<'_, PyAny>) -> bool {
    value.cast_exact::<PyDict>().is_ok_and(|dict| dict.is_empty())
}

fn put_str(out: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> bool {
    match value.cast_exact::<PyString>().map(|text| text.to_str()) {
        Ok(Ok(text)) => {
            put_text(out, text);
            true
        }
        _ => false,
    }
}

fn put_flag(out: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> bool {
    match value.cast_exact::<PyBool>() {
        Ok(flag) => {
            out.extend_from_slice(if flag.is_true() { b"true" } else { b"false" });
            true
        }
        Err(_) => false,
    }
}

fn put_number(out: &mut Vec<u8>, value: &Bound<'_, PyAny>) -> bool {
    let number = value.cast_exact::<PyInt>().ok().and_then(|number| number.extract::<i64>().ok());
    match number {
        Some(number) if (-INT_MAX..=INT_MAX).contains(&number) => {
            put_int(out, number);
            true
        }
        _ => false,
    }
}

/// Writes a value of any shape, if it can be stored unchanged (values.rs). Floats are left to Python.
pub fn put_value(out: &mut Vec<u8>, value: &Bound<'_, PyAny>, depth: usize) -> bool {
    if value.is_none() {
        out.extend_from_slice(b"null");
        return true;
    }
    if put_str(out, value) || put_number(out, value) || put_flag(out, value) {
        return true;
    }
    if depth >= DEPTH_MAX {
        return false;
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        return put_items(out, list.iter(), |out, item| put_value(out, item, depth + 1));
    }
    let Ok(dict) = value.cast_exact::<PyDict>() else { return false };
    out.push(b'{');
    for (place, (key, item)) in dict.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        let is_key = key.cast_exact::<PyString>().is_ok_and(|key| key.to_str().is_ok_and(|key| !is_reserved(key)));
        if !is_key || !put_str(out, &key) {
            return false;
        }
        out.push(b':');
        if !put_value(out, &item, depth + 1) {
            return false;
        }
    }
    out.push(b'}');
    true
}

fn put_items<'py>(
    out: &mut Vec<u8>,
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    put: impl Fn(&mut Vec<u8>, &Bound<'py, PyAny>) -> bool,
) -> bool {
    out.push(b'[');
    for (place, item) in items.enumerate() {
        if place > 0 {
            out.push(b',');
        }
        if !put(out, &item) {
            return false;
        }
    }
    out.push(b']');
    true
}

/// Writes a small value into the body, a large one as a reference to a payload.
fn put_payload<'py>(
    py: Python<'py>,
    out: &mut Vec<u8>,
    value: &Bound<'py, PyAny>,
    payloads: &Bound<'py, PyDict>,
) -> PyResult<bool> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        let Ok(text) = text.to_str() else { return Ok(false) };
        if text.len() > INLINE_MAX && text.chars().count() > INLINE_MAX {
            mention(py, out, text.as_bytes(), b"text", payloads)?;
        } else {
            put_text(out, text);
        }
        return Ok(true);
    }
    let start = out.len();
    if !put_value(out, value, 0) {
        return Ok(false);
    }
    if out.len() - start > INLINE_MAX {
        let json = out.split_off(start);
        mention(py, out, &json, b"json", payloads)?;
    }
    Ok(true)
}

fn mention<'py>(
    py: Python<'py>,
    out: &mut Vec<u8>,
    content: &[u8],
    media: &[u8],
    payloads: &Bound<'py, PyDict>,
) -> PyResult<()> {
    let digest = Sha256::digest(content);
    out.extend_from_slice(b"{\"$payload\":\"");
    out.extend(digest.iter().flat_map(|b| [HEX[(b >> 4) as usize], HEX[(b & 15) as usize]]));
    out.extend_from_slice(b"\",\"size\":");
    put_int(out, content.len() as i64);
    out.extend_from_slice(b",\"media\":\"");
    out.extend_from_slice(media);
    out.extend_from_slice(b"\"}");
    payloads.set_item(PyBytes::new(py, &digest), PyBytes::new(py, content))
}
