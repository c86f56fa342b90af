//! Walks over Python values: collects their texts in one buffer, and tests whether a value can be stored unchanged.
//!
//! A yes agrees with Python (redaction/values.py, model/values.py). A no means that Python has to decide.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Whether a value has no float inside, and no key beyond the basic plane (codec/canonical.py).
#[pyfunction]
pub fn has_no_float(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    is_without_float(value, 0)
}

fn is_without_float(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
    if value.is_exact_instance_of::<PyString>() || value.is_exact_instance_of::<PyInt>() || is_constant(value) {
        return Ok(true);
    }
    if depth > DEPTH_MAX {
        return Err(PyValueError::new_err("too deep")); // for Python to walk through
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        for (key, item) in dict.iter() {
            let key = key.cast_into_exact::<PyString>()?;
            if !key.to_str()?.chars().all(|c| c <= '\u{d7ff}') || !is_without_float(&item, depth + 1)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if value.is_exact_instance_of::<PyFloat>() {
        return Ok(false);
    }
    for item in value.cast_exact::<PyList>()?.iter() {
        if !is_without_float(&item, depth + 1)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_constant(value: &Bound<'_, PyAny>) -> bool {
    value.is_none() || value.is_exact_instance_of::<PyBool>()
}

/// How many items two lists have in common at their start, by type and content.
#[pyfunction]
pub fn common_head(a: &Bound<'_, PyList>, b: &Bound<'_, PyList>) -> PyResult<usize> {
    for (place, (one, other)) in a.iter().zip(b.iter()).enumerate() {
        if !is_same(&one, &other, 0)? {
            return Ok(place);
        }
    }
    Ok(a.len().min(b.len()))
}

/// Whether two JSON values are the same. Values of other types never are, and neither are deep ones.
fn is_same(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>, depth: usize) -> PyResult<bool> {
    if a.is(b) {
        return Ok(true);
    }
    if let Ok(text) = a.cast_exact::<PyString>() {
        let Ok(other) = b.cast_exact::<PyString>() else { return Ok(false) };
        return Ok(matches!((text.to_str(), other.to_str()), (Ok(one), Ok(two)) if one == two));
    }
    if a.is_exact_instance_of::<PyInt>() {
        return Ok(b.is_exact_instance_of::<PyInt>() && a.eq(b)?);
    }
    if let Ok(dict) = a.cast_exact::<PyDict>() {
        let Ok(other) = b.cast_exact::<PyDict>() else { return Ok(false) };
        if dict.len() != other.len() || depth > DEPTH_MAX {
            return Ok(false);
        }
        for (key, item) in dict.iter() {
            match other.get_item(&key)? {
                Some(held) if is_same(&item, &held, depth + 1)? => {}
                _ => return Ok(false),
            }
        }
        return Ok(true);
    }
    if let Ok(list) = a.cast_exact::<PyList>() {
        let Ok(other) = b.cast_exact::<PyList>() else { return Ok(false) };
        if list.len() != other.len() || depth > DEPTH_MAX {
            return Ok(false);
        }
        for (item, held) in list.iter().zip(other.iter()) {
            if !is_same(&item, &held, depth + 1)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    Ok(match (a.cast_exact::<PyFloat>(), b.cast_exact::<PyFloat>()) {
        (Ok(number), Ok(other)) => number.value() == other.value(),
        _ => false, // true, false and null are objects of their own
    })
}

pub const DEPTH_MAX: usize = 64;
pub const INT_MAX: i64 = (1 << 53) - 1;
const SHORTEST_NAMED: usize = 8;
const BYTES_MAX: usize = 1 << 20;
const RESERVED: [&str; 3] = ["$payload", "$erased", "$redacted"];
/// Endings of the names of secrets, counting letters and digits only.
const ENDINGS: [&[u8]; 12] = [
    b"password",
    b"passwd",
    b"passphrase",
    b"pwd",
    b"pass",
    b"secret",
    b"authorization",
    b"token",
    b"key",
    b"keybase",
    b"auth",
    b"cookie",
];

/// The texts of events, with a line break after each, so that no pattern matches across two of them.
pub struct Gathered<'a, 'py> {
    fields: &'a Bound<'py, PyDict>,
    pub text: String,
}

impl<'a, 'py> Gathered<'a, 'py> {
    pub fn new(fields: &'a Bound<'py, PyDict>) -> Self {
        Gathered { fields, text: String::with_capacity(1 << 14) }
    }

    /// False when Python has to decide.
    pub fn add_event(&mut self, event: &Bound<'py, PyAny>) -> PyResult<bool> {
        self.add_struct(event, 0)
    }

    /// `fields` maps a type to the names of its fields, and to the field that names the field `value`.
    fn add_struct(&mut self, value: &Bound<'py, PyAny>, depth: usize) -> PyResult<bool> {
        let Some(known) = self.fields.get_item(value.get_type())? else {
            return Ok(false);
        };
        let known = known.cast_into::<PyTuple>()?;
        let (names, key) = (known.get_item(0)?.cast_into::<PyTuple>()?, known.get_item(1)?.cast_into::<PyString>()?);
        for name in names.iter() {
            let name = name.cast_into::<PyString>()?;
            let held = value.getattr(&name)?;
            let is_named = !key.is_empty()? && name.to_str()? == "value" && says_secret(&value.getattr(&key)?)?;
            if !self.add(&held, is_named, depth)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    pub fn add(&mut self, value: &Bound<'py, PyAny>, is_named: bool, depth: usize) -> PyResult<bool> {
        if depth > DEPTH_MAX {
            return Ok(false);
        }
        if let Ok(text) = value.cast::<PyString>() {
            let Ok(text) = text.to_str() else { return Ok(false) };
            self.text.push_str(text);
            self.text.push('\n');
            return Ok(!(is_named && text.len() >= SHORTEST_NAMED));
        }
        if is_scalar(value) {
            return Ok(true);
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            for (key, item) in dict.iter() {
                let is_named = says_secret(&name_of(dict, &key)?)?;
                if !self.add(&item, is_named, depth + 1)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            for item in value.try_iter()? {
                if !self.add(&item?, is_named, depth + 1)? {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        if let Ok(bytes) = value.cast::<PyBytes>() {
            return Ok(self.add_bytes(bytes.as_bytes()));
        }
        if self.fields.contains(value.get_type())? {
            return self.add_struct(value, depth + 1);
        }
        // A payload is the only known value that is no struct; anything else is left to Python.
        match value.getattr_opt(intern!(value.py(), "content"))? {
            Some(content) => Ok(content.cast::<PyBytes>().is_ok_and(|content| self.add_bytes(content.as_bytes()))),
            None => Ok(false),
        }
    }

    /// Bytes that are not text are skipped.
    fn add_bytes(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > BYTES_MAX {
            return false;
        }
        if let Ok(text) = std::str::from_utf8(bytes) {
            self.text.push_str(text);
            self.text.push('\n');
        }
        true
    }
}

fn is_scalar(value: &Bound<'_, PyAny>) -> bool {
    value.is_none()
        || value.is_exact_instance_of::<PyInt>()
        || value.is_exact_instance_of::<PyBool>()
        || value.is_exact_instance_of::<PyFloat>()
}

/// The name of a value in a dict: its key, but for the value of a patch operation its path.
fn name_of<'py>(dict: &Bound<'py, PyDict>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = dict.py();
    if key.is_exact_instance_of::<PyString>() && key.eq(intern!(py, "value"))? && dict.contains(intern!(py, "op"))? {
        if let Some(path) = dict.get_item(intern!(py, "path"))? {
            return Ok(path);
        }
    }
    Ok(key.clone())
}

/// Whether a name, or the last part of a path, may be that of a secret. A name beyond ASCII may be.
fn says_secret(name: &Bound<'_, PyAny>) -> PyResult<bool> {
    let Ok(name) = name.cast::<PyString>() else { return Ok(false) };
    let Ok(name) = name.to_str() else { return Ok(true) };
    if !name.is_ascii() {
        return Ok(true);
    }
    let mut last = [0; 16];
    let mut at = last.len();
    for byte in name.bytes().rev().filter(u8::is_ascii_alphanumeric).take(last.len()) {
        at -= 1;
        last[at] = byte.to_ascii_lowercase();
    }
    Ok(ENDINGS.iter().any(|ending| last[at..].ends_with(ending)))
}

/// Whether a value can be stored unchanged: JSON that means the same in every language. With a `mark`, an object with
/// that key cannot.
#[pyfunction]
#[pyo3(signature = (value, mark = None))]
pub fn is_plain(value: &Bound<'_, PyAny>, mark: Option<&str>) -> PyResult<bool> {
    is_plain_at(value, mark, 0)
}

fn is_plain_at(value: &Bound<'_, PyAny>, mark: Option<&str>, depth: usize) -> PyResult<bool> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        return Ok(text.to_str().is_ok());
    }
    if value.is_none() || value.is_exact_instance_of::<PyBool>() {
        return Ok(true);
    }
    if let Ok(number) = value.cast_exact::<PyInt>() {
        return Ok(number.extract::<i64>().is_ok_and(|n| (-INT_MAX..=INT_MAX).contains(&n)));
    }
    if depth >= DEPTH_MAX {
        return Ok(false);
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        for (key, item) in dict.iter() {
            let Ok(key) = key.cast_exact::<PyString>() else { return Ok(false) };
            let is_refused = |name: &str| is_reserved(name) || Some(name) == mark;
            if key.to_str().map_or(true, is_refused) || !is_plain_at(&item, mark, depth + 1)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        for item in list.iter() {
            if !is_plain_at(&item, mark, depth + 1)? {
                return Ok(false);
            }
        }
        return Ok(true);
    }
    Ok(value.cast_exact::<PyFloat>().is_ok_and(|number| number.value().is_finite() && number.value().fract() != 0.0))
}

/// Whether the log itself uses this key as a mark.
pub fn is_reserved(key: &str) -> bool {
    RESERVED.contains(&key)
}
