//! Changes of the state while events are sealed: folded and encoded at once (the specification is state/changes.py).
//!
//! Effects put and remove entries by their path. Here that is one step from the arguments to the changed document, the
//! way back, and the bytes of the operation. What is no entry, or does not fit, goes to `Fold.apply` as an operation.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString, PyTuple};

use crate::chain::put_text;
use crate::encode::put_value;

/// How many tokens name an entry, where the table of depths does not say.
const DEPTH: usize = 2;

/// The changes of one event after the other, on one fold.
#[pyclass]
pub struct StateChanges {
    fold: Py<PyAny>,
    doc: Py<PyDict>,
    undo: Py<PyList>,
    depths: Py<PyDict>,
    missing: Py<PyAny>,
    encode: Py<PyAny>,
    delta: Vec<u8>,
}

#[pymethods]
impl StateChanges {
    /// `missing` stands for "nothing there" in the way back; `encode` is asked for values that are not plain.
    #[new]
    pub fn new(
        fold: Bound<'_, PyAny>,
        undo: Bound<'_, PyList>,
        depths: Py<PyDict>,
        missing: Py<PyAny>,
        encode: Py<PyAny>,
    ) -> PyResult<Self> {
        let doc = fold.getattr("doc")?.cast_into_exact::<PyDict>()?.unbind();
        Ok(StateChanges { fold: fold.unbind(), doc, undo: undo.unbind(), depths, missing, encode, delta: Vec::new() })
    }

    /// The last argument is now the value at the path before it.
    #[pyo3(signature = (*path_and_value))]
    fn put(&mut self, path_and_value: &Bound<'_, PyTuple>) -> PyResult<()> {
        let last = path_and_value.len().checked_sub(1).ok_or_else(|| PyValueError::new_err("no value"))?;
        let tokens = tokens_of(path_and_value, last)?;
        self.change(&tokens.iter().collect::<Vec<_>>(), Some(&path_and_value.get_item(last)?))
    }

    #[pyo3(signature = (*path))]
    fn remove(&mut self, path: &Bound<'_, PyTuple>) -> PyResult<()> {
        let tokens = tokens_of(path, path.len())?;
        self.change(&tokens.iter().collect::<Vec<_>>(), None)
    }

    /// Operations of a stored delta, as they are.
    fn extend(&mut self, py: Python<'_>, ops: &Bound<'_, PyList>) -> PyResult<()> {
        for op in ops.iter() {
            self.separate();
            self.put_encoded(py, &op)?;
        }
        self.fold.call_method1(py, intern!(py, "apply"), (ops, &self.undo))?;
        Ok(())
    }

    /// The event's delta as it is stored; nothing where the event changes nothing.
    fn finish<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let delta = PyBytes::new(py, self.written());
        self.delta.clear();
        delta
    }
}

impl StateChanges {
    /// The delta that was written since `clear`.
    pub fn written(&mut self) -> &[u8] {
        if !self.delta.is_empty() {
            self.delta.push(b']');
        }
        &self.delta
    }

    /// Applies operations that are stored elsewhere.
    pub fn apply(&self, ops: &Bound<'_, PyList>) -> PyResult<()> {
        let py = ops.py();
        self.fold.bind(py).call_method1(intern!(py, "apply"), (ops, &self.undo))?;
        Ok(())
    }

    /// Makes ready for the next event.
    pub fn clear(&mut self) {
        self.delta.clear();
    }

    /// Puts a value at the path, or removes what is there.
    pub fn change(&mut self, tokens: &[&Bound<'_, PyString>], value: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(first) = tokens.first() else { return Err(PyValueError::new_err("no path")) };
        let py = first.py();
        let mut pointer = String::with_capacity(64);
        for token in tokens {
            push_escaped(&mut pointer, token.to_str()?);
        }
        self.separate();
        let name = if value.is_some() { "add" } else { "remove" };
        self.delta.extend_from_slice(b"{\"op\":\"");
        self.delta.extend_from_slice(name.as_bytes());
        self.delta.extend_from_slice(b"\",\"path\":");
        put_text(&mut self.delta, &pointer);
        if let Some(value) = value {
            // Encoded before it is folded: what it holds becomes part of the state.
            self.delta.extend_from_slice(b",\"value\":");
            self.put_encoded(py, value)?;
        }
        self.delta.push(b'}');
        if self.change_entry(py, tokens, &pointer, value)? {
            return Ok(());
        }
        let op = PyDict::new(py);
        op.set_item("op", name)?;
        op.set_item("path", &pointer)?;
        if let Some(value) = value {
            op.set_item("value", value)?;
        }
        self.fold.call_method1(py, intern!(py, "apply"), ([op], &self.undo))?;
        Ok(())
    }

    /// Changes an entry, or a member of one: then a changed copy takes its place. False where that is for `Fold.apply`.
    fn change_entry(
        &self,
        py: Python<'_>,
        tokens: &[&Bound<'_, PyString>],
        pointer: &str,
        value: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<bool> {
        let depth = self.depths.bind(py).get_item(tokens[0])?.map_or(Ok(DEPTH), |depth| depth.extract::<usize>())?;
        let mut parent = self.doc.bind(py).clone();
        for token in tokens.iter().take(depth - 1) {
            match parent.get_item(token)?.map(|child| child.cast_into_exact::<PyDict>()) {
                Some(Ok(child)) => parent = child,
                _ => return Ok(false),
            }
        }
        let (key, member) = match &tokens[(depth - 1).min(tokens.len())..] {
            [key] => (*key, None),
            [key, member] => (*key, Some(*member)),
            _ => return Ok(false),
        };
        let old = parent.get_item(key)?;
        let copied = match (member, &old) {
            (None, _) => None,
            (Some(_), Some(old)) if old.is_exact_instance_of::<PyDict>() => Some(old.cast_exact::<PyDict>()?.copy()?),
            _ => return Ok(false),
        };
        let (target, at) = copied.as_ref().zip(member).unwrap_or((&parent, key));
        if value.is_none() && !target.contains(at)? {
            return Ok(false); // `Fold.apply` says what is wrong
        }
        let entry = member.map_or(pointer, |_| &pointer[..pointer.rfind('/').unwrap_or(0)]);
        let old = old.unwrap_or_else(|| self.missing.bind(py).clone());
        let digest = self.fold.bind(py).getattr(intern!(py, "_digest"))?;
        if !digest.is_none() {
            let touched = digest.getattr(intern!(py, "touched"))?;
            touched.call_method1(intern!(py, "setdefault"), (entry, (&parent, key, &old)))?;
        }
        match value {
            Some(value) => target.set_item(at, value)?,
            None => target.del_item(at)?,
        }
        if let Some(copied) = &copied {
            parent.set_item(key, copied)?;
        }
        self.undo.bind(py).append((entry, &parent, key, old))?;
        Ok(true)
    }

    fn separate(&mut self) {
        self.delta.push(if self.delta.is_empty() { b'[' } else { b',' });
    }

    fn put_encoded(&mut self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let start = self.delta.len();
        if !put_value(&mut self.delta, value, 0) {
            self.delta.truncate(start);
            self.delta.extend_from_slice(self.encode.bind(py).call1((value,))?.cast_exact::<PyBytes>()?.as_bytes());
        }
        Ok(())
    }
}

/// The first `count` items of a tuple.
fn tokens_of<'py>(path: &Bound<'py, PyTuple>, count: usize) -> PyResult<Vec<Bound<'py, PyString>>> {
    path.iter().take(count).map(|token| Ok(token.cast_into_exact()?)).collect()
}

/// Adds a key as one token of a JSON Pointer.
fn push_escaped(pointer: &mut String, token: &str) {
    pointer.push('/');
    if token.contains(['~', '/']) {
        pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
    } else {
        pointer.push_str(token);
    }
}
