//! Sealing a commit of usual events in one call: from encoded events to chained records, with the state changed on the
//! way (the specification is log/seal.py).

use std::collections::HashMap;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple, PyType};
use sha2::{Digest, Sha256};

use crate::chain::{begin_header, join_body, put_choice, put_hex, put_unless, SALT_SIZE};
use crate::changes::StateChanges;
use crate::effects::{refuse, Kind};

/// The events that can be sealed here, by type, and what their changes of the state need.
#[pyclass(frozen)]
pub struct Sealer {
    kinds: HashMap<usize, (Py<PyType>, Py<PyString>, Kind)>,
    depths: Py<PyDict>,
    missing: Py<PyAny>,
    encode: Py<PyAny>,
}

/// Records, the chain's hash, the size of headers and bodies, first and last turn, kinds, paths.
type Sealed<'py> =
    (Bound<'py, PyList>, Bound<'py, PyBytes>, usize, (i64, i64), Bound<'py, PyTuple>, Bound<'py, PyTuple>);

#[pymethods]
impl Sealer {
    /// `kinds` maps a type to its kind; the rest is for `StateChanges`.
    #[new]
    fn new(kinds: &Bound<'_, PyDict>, depths: Py<PyDict>, missing: Py<PyAny>, encode: Py<PyAny>) -> PyResult<Self> {
        let mut known = HashMap::new();
        for (cls, kind) in kinds.iter() {
            let (cls, kind) = (cls.cast_into::<PyType>()?, kind.cast_into_exact::<PyString>()?);
            let sealed_as = Kind::named(kind.to_str()?)?;
            known.insert(cls.as_ptr() as usize, (cls.unbind(), kind.unbind(), sealed_as));
        }
        Ok(Sealer { kinds: known, depths, missing, encode })
    }

    /// Seals `steps` on the chain's hash `prev`. The payloads go to `new`; `known` are those that were stored before. On
    /// an error the state is half changed, and `undo` says how to go back.
    #[allow(clippy::too_many_arguments)]
    fn seal<'py>(
        &self,
        py: Python<'py>,
        fold: Bound<'py, PyAny>,
        undo: Bound<'py, PyList>,
        steps: &Bound<'py, PyList>,
        known: &Bound<'py, PyDict>,
        new: &Bound<'py, PyDict>,
        prev: &[u8],
        first: i64,
        at: i64,
        salts: &[u8],
    ) -> PyResult<Sealed<'py>> {
        for step in steps.iter() {
            if step.getattr(intern!(py, "encoded"))?.is_none() {
                return Err(refuse()); // before anything is changed
            }
        }
        let doc = fold.getattr(intern!(py, "doc"))?.cast_into_exact::<PyDict>()?;
        let (depths, missing, encode) = (&self.depths, &self.missing, &self.encode);
        let mut changes =
            StateChanges::new(fold, undo, depths.clone_ref(py), missing.clone_ref(py), encode.clone_ref(py))?;
        let (records, kinds, paths) = (PyList::empty(py), PyDict::new(py), PyDict::new(py));
        let (mut chain, mut size, mut turns) = (prev.to_vec(), 0, (0, 0));
        for ((seq, step), salt) in (first..).zip(steps.iter()).zip(salts.chunks(SALT_SIZE)) {
            let draft = step.getattr(intern!(py, "draft"))?;
            let event = draft.getattr(intern!(py, "event"))?;
            let (_, name, kind) = self.kinds.get(&(event.get_type().as_ptr() as usize)).ok_or_else(refuse)?;
            let encoded = step.getattr(intern!(py, "encoded"))?.cast_into_exact::<PyTuple>()?;
            take_payloads(&encoded.get_item(1)?, known, new)?;
            let is_bare = step.getattr(intern!(py, "is_bare"))?.cast_exact::<PyBool>()?.is_true();
            let cause = if is_bare { 0 } else { cause_of(&draft, &doc, seq)? };
            let place = kind.place(&doc, &event, seq, cause)?;
            kind.write(&doc, &event, &place, &mut changes)?;

            let body = join_body(encoded.get_item(0)?.cast_exact::<PyBytes>()?.as_bytes(), changes.written());
            changes.clear();
            let mut header = Vec::with_capacity(256);
            begin_header(&mut header, seq, name.bind(py).to_str()?, at);
            put_hex(&mut header, &Sha256::new().chain_update(salt).chain_update(&body).finalize());
            header.push(b'"');
            put_unless(&mut header, b",\"turn\":", place.turn, 0);
            put_unless(&mut header, b",\"attempt\":", place.attempt, 1);
            if !is_bare {
                put_choice(&mut header, b",\"actor\":", &draft.getattr(intern!(py, "actor"))?, intern!(py, "agent"))?;
            }
            put_unless(&mut header, b",\"cause\":", place.cause, 0);
            header.push(b'}');
            chain = Sha256::new().chain_update(&chain).chain_update(&header).finalize().to_vec();

            size += header.len() + body.len();
            records.append((PyBytes::new(py, &header), PyBytes::new(py, salt), PyBytes::new(py, &body)))?;
            kinds.set_item(name, py.None())?;
            if *kind == Kind::FileChanged {
                paths.set_item(event.getattr(intern!(py, "path"))?, py.None())?;
            }
            if place.turn > 0 {
                let (from, upto) = turns;
                turns = (if from == 0 { place.turn } else { place.turn.min(from) }, place.turn.max(upto));
            }
        }
        let (kinds, paths) = (kinds.keys().to_tuple(), paths.keys().to_tuple());
        Ok((records, PyBytes::new(py, &chain), size, turns, kinds, paths))
    }
}

/// A payload that the session has stored before is mentioned with its place: that is left to Python.
fn take_payloads(payloads: &Bound<'_, PyAny>, known: &Bound<'_, PyDict>, new: &Bound<'_, PyDict>) -> PyResult<()> {
    if payloads.is_none() {
        return Ok(());
    }
    for (digest, content) in payloads.cast_exact::<PyDict>()?.iter() {
        if known.contains(&digest)? {
            return Err(refuse());
        }
        new.set_item(digest, content)?;
    }
    Ok(())
}

/// Checks the fields of a draft that callers choose, and returns its cause. What has a source, other trust or other
/// origins is left to Python.
fn cause_of(draft: &Bound<'_, PyAny>, doc: &Bound<'_, PyDict>, seq: i64) -> PyResult<i64> {
    let py = draft.py();
    let is = |name, default: &Bound<'_, PyAny>| -> PyResult<bool> { Ok(draft.getattr(name)?.is(default)) };
    let actor = draft.getattr(intern!(py, "actor"))?.cast_into_exact::<PyString>()?;
    let is_usual = is(intern!(py, "source"), intern!(py, ""))?
        && is(intern!(py, "trust"), intern!(py, "trusted"))?
        && draft.getattr(intern!(py, "derived_from"))?.cast_exact::<PyTuple>()?.is_empty()
        && actor.to_str()?.is_ascii();
    let cause: i64 = draft.getattr(intern!(py, "cause"))?.cast_exact::<PyInt>()?.extract()?;
    let within = draft.getattr(intern!(py, "within"))?;
    if !is_usual || !(0..seq).contains(&cause) || !(within.is_none() || is_within(doc, &within)?) {
        return Err(refuse());
    }
    Ok(cause)
}

/// Whether the turn and attempt that a draft belongs to are those that are open.
fn is_within(doc: &Bound<'_, PyDict>, within: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = within.py();
    let turn = doc.get_item(intern!(py, "turn"))?.ok_or_else(refuse)?.cast_into_exact::<PyDict>()?;
    let held = |name| turn.get_item(name)?.ok_or_else(refuse);
    let open = (held(intern!(py, "number"))?, held(intern!(py, "attempt"))?);
    Ok(within.eq(open)? && held(intern!(py, "status"))?.eq(intern!(py, "open"))?)
}
