//! Sealing a commit of usual events in one call: from encoded events to chained records, with the state changed on the
//! way (the specification is log/seal.py).

use std::collections::HashMap;

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyInt, PyList, PyString, PyTuple, PyType};
use sha2::{Digest, Sha256};

use crate::chain::{begin_header, join_body, put_choice, put_hex, put_ranges, put_unless, SALT_SIZE};
use crate::changes::StateChanges;
use crate::effects::{is_usual_patch, refuse, Kind};

/// The events that can be sealed here, by type, and what their changes of the state need.
#[pyclass(frozen)]
pub struct Sealer {
    kinds: HashMap<usize, (Py<PyType>, Py<PyString>, Kind)>,
    depths: Py<PyDict>,
    missing: Py<PyAny>,
    encode: Py<PyAny>,
    decode: Py<PyAny>,
}

/// How far a draft can be trusted (model/trust.py).
const TRUSTS: [&str; 3] = ["trusted", "unverified", "untrusted"];

/// Records, the chain's hash, the size of headers and bodies, first and last turn, kinds, paths.
type Sealed<'py> =
    (Bound<'py, PyList>, Bound<'py, PyBytes>, usize, (i64, i64), Bound<'py, PyTuple>, Bound<'py, PyTuple>);

#[pymethods]
impl Sealer {
    /// `kinds` maps a type to its kind; `decode` reads the delta in a body; the rest is for `StateChanges`.
    #[new]
    fn new(
        kinds: &Bound<'_, PyDict>,
        depths: Py<PyDict>,
        missing: Py<PyAny>,
        encode: Py<PyAny>,
        decode: Py<PyAny>,
    ) -> PyResult<Self> {
        let mut known = HashMap::new();
        for (cls, kind) in kinds.iter() {
            let (cls, kind) = (cls.cast_into::<PyType>()?, kind.cast_into_exact::<PyString>()?);
            let sealed_as = Kind::named(kind.to_str()?)?;
            known.insert(cls.as_ptr() as usize, (cls.unbind(), kind.unbind(), sealed_as));
        }
        Ok(Sealer { kinds: known, depths, missing, encode, decode })
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
            let chosen = if is_bare { None } else { Some(Chosen::of(&draft, &doc, seq)?) };
            let place = kind.place(&doc, &event, seq, chosen.as_ref().map_or(0, |chosen| chosen.cause))?;
            let authored = encoded.get_item(0)?.cast_into_exact::<PyBytes>()?;
            if *kind == Kind::StatePatched {
                let ops = self.decode.bind(py).call1((&authored,))?.cast_into_exact::<PyList>()?;
                if !is_usual_patch(&ops)? {
                    return Err(refuse());
                }
                changes.apply(&ops)?;
            } else {
                kind.write(&doc, &event, &place, &mut changes)?;
                if let Some(chosen) = &chosen {
                    chosen.write_trust(name.bind(py), seq, &mut changes)?;
                }
            }

            let body = join_body(authored.as_bytes(), changes.written());
            changes.clear();
            let mut header = Vec::with_capacity(256);
            begin_header(&mut header, seq, name.bind(py).to_str()?, at);
            put_hex(&mut header, &Sha256::new().chain_update(salt).chain_update(&body).finalize());
            header.push(b'"');
            put_unless(&mut header, b",\"turn\":", place.turn, 0);
            put_unless(&mut header, b",\"attempt\":", place.attempt, 1);
            if let Some(chosen) = &chosen {
                put_choice(&mut header, b",\"actor\":", &chosen.actor, intern!(py, "agent"))?;
            }
            put_unless(&mut header, b",\"cause\":", place.cause, 0);
            if let Some(chosen) = &chosen {
                put_ranges(&mut header, &chosen.derived_from)?;
                put_choice(&mut header, b",\"source\":", &chosen.source, intern!(py, ""))?;
                put_choice(&mut header, b",\"trust\":", &chosen.trust, intern!(py, "trusted"))?;
            }
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

/// The fields of a draft that callers choose.
struct Chosen<'py> {
    cause: i64,
    actor: Bound<'py, PyString>,
    source: Bound<'py, PyString>,
    trust: Bound<'py, PyString>,
    derived_from: Bound<'py, PyTuple>,
}

impl<'py> Chosen<'py> {
    /// Checks them. Texts beyond ASCII are left to Python.
    fn of(draft: &Bound<'py, PyAny>, doc: &Bound<'_, PyDict>, seq: i64) -> PyResult<Self> {
        let py = draft.py();
        let text = |name| -> PyResult<Bound<'py, PyString>> { Ok(draft.getattr(name)?.cast_into_exact()?) };
        let chosen = Chosen {
            cause: draft.getattr(intern!(py, "cause"))?.cast_exact::<PyInt>()?.extract()?,
            actor: text(intern!(py, "actor"))?,
            source: text(intern!(py, "source"))?,
            trust: text(intern!(py, "trust"))?,
            derived_from: draft.getattr(intern!(py, "derived_from"))?.cast_into_exact()?,
        };
        let is_usual = chosen.actor.to_str()?.is_ascii()
            && chosen.source.to_str()?.is_ascii()
            && TRUSTS.contains(&chosen.trust.to_str()?)
            && (0..seq).contains(&chosen.cause)
            && are_earlier(&chosen.derived_from, seq)?;
        let within = draft.getattr(intern!(py, "within"))?;
        if !is_usual || !(within.is_none() || is_within(doc, &within)?) {
            return Err(refuse());
        }
        Ok(chosen)
    }

    /// Notes in the state what is trusted less.
    fn write_trust(&self, kind: &Bound<'py, PyString>, seq: i64, out: &mut StateChanges) -> PyResult<()> {
        let py = kind.py();
        if self.trust.to_str()? == TRUSTS[0] {
            return Ok(());
        }
        let noted = PyDict::new(py);
        noted.set_item(intern!(py, "trust"), &self.trust)?;
        noted.set_item(intern!(py, "seq"), seq)?;
        let source = if self.source.is_empty()? { kind } else { &self.source };
        out.change(&[intern!(py, "trust"), source], Some(&noted))
    }
}

/// Whether the ranges are of events before `seq`.
fn are_earlier(ranges: &Bound<'_, PyTuple>, seq: i64) -> PyResult<bool> {
    for range in ranges.iter() {
        let range = range.cast_into_exact::<PyTuple>()?;
        let end = |place| -> PyResult<i64> { range.get_item(place)?.cast_exact::<PyInt>()?.extract() };
        if range.len() != 2 || end(0)? <= 0 || end(0)? > end(1)? || end(1)? >= seq {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether the turn and attempt that a draft belongs to are those that are open.
fn is_within(doc: &Bound<'_, PyDict>, within: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = within.py();
    let turn = doc.get_item(intern!(py, "turn"))?.ok_or_else(refuse)?.cast_into_exact::<PyDict>()?;
    let held = |name| turn.get_item(name)?.ok_or_else(refuse);
    let open = (held(intern!(py, "number"))?, held(intern!(py, "attempt"))?);
    Ok(within.eq(open)? && held(intern!(py, "status"))?.eq(intern!(py, "open"))?)
}
