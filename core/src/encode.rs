//! Encoding: from events to the JSON of their bodies and to payloads (the specification is codec/records.py).
//!
//! Only values of exactly the declared types are encoded here, so there is no need to decode the bytes as a check.

use std::collections::HashMap;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyAnyMethods, PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple, PyType};
use sha2::{Digest, Sha256};

use crate::chain::{put_hex, put_int, put_text};
use crate::scan::Scanner;
use crate::values::{is_reserved, Gathered, DEPTH_MAX, INT_MAX};

const INLINE_MAX: usize = 512;

/// A body, and the payloads that it mentions, if any.
type Encoded<'py> = (Bound<'py, PyBytes>, Option<Bound<'py, PyDict>>);

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
    Numbers,
    Objects,
    /// Only its default.
    Default,
}

struct Field {
    /// The name as JSON, with its colon.
    key: Vec<u8>,
    default: Py<PyAny>,
    /// Whether its texts are searched for secrets.
    is_searched: bool,
    holds: Holds,
}

/// The events that can be encoded here, by type.
#[pyclass(frozen)]
pub struct Encoder {
    shapes: HashMap<usize, (Py<PyType>, Vec<Field>)>,
    astuple: Py<PyAny>,
}

#[pymethods]
impl Encoder {
    /// `shapes` maps a type to its fields in order: name, default, whether it is searched, type code, details of the
    /// type. `astuple` gives the values of all fields: to ask for each by its name takes longer.
    #[new]
    fn new(shapes: &Bound<'_, PyDict>, astuple: Py<PyAny>) -> PyResult<Self> {
        let mut known = HashMap::new();
        for (cls, fields) in shapes.iter() {
            let cls = cls.cast_into::<PyType>()?;
            known.insert(cls.as_ptr() as usize, (cls.clone().unbind(), fields_of(&fields)?));
        }
        Ok(Encoder { shapes: known, astuple })
    }

    /// For each event its body and its payloads (SHA-256 and content); None where Python has to encode it.
    fn encode<'py>(&self, py: Python<'py>, events: &Bound<'py, PyList>) -> PyResult<Vec<Option<Encoded<'py>>>> {
        events.iter().map(|event| self.encode_one(py, &event, None)).collect()
    }

    /// The same for events that are all encoded here and have no sign of a secret; else None.
    fn encode_clean<'py>(
        &self,
        py: Python<'py>,
        events: &Bound<'py, PyList>,
        scanner: &Scanner,
    ) -> PyResult<Option<Vec<Encoded<'py>>>> {
        if !events.iter().all(|event| self.shapes.contains_key(&(event.get_type().as_ptr() as usize))) {
            return Ok(None);
        }
        let no_structs = PyDict::new(py);
        let mut texts = Gathered::new(&no_structs);
        let mut encoded = Vec::with_capacity(events.len());
        for event in events.iter() {
            let Some(one) = self.encode_one(py, &event, Some(&mut texts))? else { return Ok(None) };
            encoded.push(one);
        }
        Ok(Some(encoded).filter(|_| scanner.is_clean(py, &texts.text)))
    }
}

impl Encoder {
    fn encode_one<'py>(
        &self,
        py: Python<'py>,
        event: &Bound<'py, PyAny>,
        texts: Option<&mut Gathered<'_, 'py>>,
    ) -> PyResult<Option<Encoded<'py>>> {
        let Some((_, fields)) = self.shapes.get(&(event.get_type().as_ptr() as usize)) else { return Ok(None) };
        let astuple = self.astuple.bind(py);
        let mut writing = Writing { out: Vec::with_capacity(512), payloads: None, texts, astuple };
        if !writing.put_struct(py, event, fields)? {
            return Ok(None);
        }
        Ok(Some((PyBytes::new(py, &writing.out), writing.payloads)))
    }
}

type FieldParts<'py> = (Bound<'py, PyString>, Py<PyAny>, bool, u8, Bound<'py, PyAny>);

fn fields_of(fields: &Bound<'_, PyAny>) -> PyResult<Vec<Field>> {
    let mut out = Vec::new();
    for field in fields.try_iter()? {
        let (name, default, is_searched, code, more): FieldParts<'_> = field?.extract()?;
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
            9 => Holds::Numbers,
            10 => Holds::Objects,
            _ => return Err(PyValueError::new_err("no such field")),
        };
        out.push(Field { key, default, is_searched, holds });
    }
    Ok(out)
}

/// An event that is being encoded.
struct Writing<'a, 'b, 'py> {
    out: Vec<u8>,
    payloads: Option<Bound<'py, PyDict>>,
    /// Where to collect what is searched for secrets.
    texts: Option<&'a mut Gathered<'b, 'py>>,
    astuple: &'a Bound<'py, PyAny>,
}

impl<'py> Writing<'_, '_, 'py> {
    /// Writes all fields but defaults, like msgspec. False when Python has to decide.
    fn put_struct(&mut self, py: Python<'py>, value: &Bound<'py, PyAny>, fields: &[Field]) -> PyResult<bool> {
        self.out.push(b'{');
        let start = self.out.len();
        let values = self.astuple.call1((value,))?.cast_into_exact::<PyTuple>()?;
        if values.len() != fields.len() {
            return Ok(false);
        }
        for (field, held) in fields.iter().zip(values.iter()) {
            if held.is(&field.default) {
                continue; // the default object itself; an equal value in another object is written, like msgspec does
            }
            if matches!(field.holds, Holds::Object | Holds::Default) && is_empty_dict(&held) {
                continue; // a default that is created for each event
            }
            if self.out.len() > start {
                self.out.push(b',');
            }
            self.out.extend_from_slice(&field.key);
            if !self.put_field(py, &held, &field.holds)? {
                return Ok(false);
            }
            if let Some(texts) = self.texts.as_mut().filter(|_| field.is_searched) {
                if !texts.add(&held, false, 0)? {
                    return Ok(false);
                }
            }
        }
        self.out.push(b'}');
        Ok(true)
    }

    fn put_field(&mut self, py: Python<'py>, held: &Bound<'py, PyAny>, holds: &Holds) -> PyResult<bool> {
        let out = &mut self.out;
        Ok(match holds {
            Holds::Text => put_str(out, held),
            Holds::Flag => put_flag(out, held),
            Holds::Number => put_number(out, held),
            Holds::Choice(choices) => match held.cast_exact::<PyString>() {
                Ok(text) => {
                    text.to_str().is_ok_and(|text| choices.iter().any(|each| each == text)) && put_str(out, held)
                }
                Err(_) => false,
            },
            Holds::Texts => match held.cast_exact::<PyTuple>() {
                Ok(texts) => put_items(out, texts.iter(), put_str),
                Err(_) => false,
            },
            Holds::Numbers => match held.cast_exact::<PyTuple>() {
                Ok(numbers) => put_items(out, numbers.iter(), put_number),
                Err(_) => false,
            },
            Holds::Objects => match held.cast_exact::<PyList>() {
                Ok(objects) => {
                    objects.iter().all(|each| each.is_exact_instance_of::<PyDict>()) && put_value(out, held, 0)
                }
                Err(_) => false,
            },
            Holds::Object => held.cast_exact::<PyDict>().is_ok() && put_value(out, held, 0),
            Holds::Payload => self.put_payload(py, held)?,
            Holds::Struct(cls, fields) => held.get_type().is(cls.bind(py)) && self.put_struct(py, held, fields)?,
            Holds::Default => false,
        })
    }

    /// Writes a small value into the body, a large one as a reference to a payload.
    fn put_payload(&mut self, py: Python<'py>, value: &Bound<'py, PyAny>) -> PyResult<bool> {
        if let Ok(text) = value.cast_exact::<PyString>() {
            let Ok(text) = text.to_str() else { return Ok(false) };
            if text.len() > INLINE_MAX && text.chars().count() > INLINE_MAX {
                self.mention(py, text.as_bytes(), b"text")?;
            } else {
                put_text(&mut self.out, text);
            }
            return Ok(true);
        }
        let start = self.out.len();
        if !put_value(&mut self.out, value, 0) {
            return Ok(false);
        }
        if self.out.len() - start > INLINE_MAX {
            let json = self.out.split_off(start);
            self.mention(py, &json, b"json")?;
        }
        Ok(true)
    }

    fn mention(&mut self, py: Python<'py>, content: &[u8], media: &[u8]) -> PyResult<()> {
        let digest = Sha256::digest(content);
        let out = &mut self.out;
        out.extend_from_slice(b"{\"$payload\":\"");
        put_hex(out, &digest);
        out.extend_from_slice(b"\",\"size\":");
        put_int(out, content.len() as i64);
        out.extend_from_slice(b",\"media\":\"");
        out.extend_from_slice(media);
        out.extend_from_slice(b"\"}");
        let payloads = self.payloads.get_or_insert_with(|| PyDict::new(py));
        payloads.set_item(PyBytes::new(py, &digest), PyBytes::new(py, content))
    }
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
