//! Whether an event of a usual kind is legal, and what it does to the state (the specification is state/effects.py and
//! the machines in log/seal.py).
//!
//! Whatever is unusual is an error: an illegal event, a failed call, a session that is not at work. Python decides then.

use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyInt, PyList, PyString, PyTuple};

use crate::changes::StateChanges;

/// The kinds that are sealed here.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    TurnStarted,
    TurnEnded,
    DecisionMade,
    DeadEndNoted,
    FileChanged,
    ActionRequested,
    ActionStarted,
    ActionSucceeded,
    ActionRecorded,
    StatePatched,
    /// It changes nothing.
    Said,
}

/// Where an event stands.
pub struct Place {
    pub seq: i64,
    pub turn: i64,
    pub attempt: i64,
    pub cause: i64,
}

type Doc<'py> = Bound<'py, PyDict>;

pub fn refuse() -> PyErr {
    PyValueError::new_err("left to Python")
}

impl Kind {
    pub fn named(kind: &str) -> PyResult<Kind> {
        Ok(match kind {
            "turn.started" => Kind::TurnStarted,
            "turn.ended" => Kind::TurnEnded,
            "decision.made" => Kind::DecisionMade,
            "dead_end.noted" => Kind::DeadEndNoted,
            "file.changed" => Kind::FileChanged,
            "action.requested" => Kind::ActionRequested,
            "action.started" => Kind::ActionStarted,
            "action.succeeded" => Kind::ActionSucceeded,
            "action.recorded" => Kind::ActionRecorded,
            "state.patched" => Kind::StatePatched,
            "message.added" | "note.added" | "items.kept" => Kind::Said,
            _ => return Err(refuse()),
        })
    }

    /// Asks the machines, and tells where a legal event stands. `cause` is what its draft says; 0 is nothing.
    pub fn place(self, doc: &Doc<'_>, event: &Bound<'_, PyAny>, seq: i64, cause: i64) -> PyResult<Place> {
        let py = event.py();
        if !matches!(text_in(doc, intern!(py, "status"))?.to_str()?, "active" | "open") {
            return Err(refuse());
        }
        let now = part_of(doc, intern!(py, "turn"))?;
        let (number, attempt) = (number_in(&now, intern!(py, "number"))?, number_in(&now, intern!(py, "attempt"))?);
        let is_open = text_in(&now, intern!(py, "status"))?.to_str()? == "open";
        let (turn, attempt) = match self {
            Kind::TurnStarted if is_open => return Err(refuse()),
            Kind::TurnStarted if !flag_of(event, intern!(py, "retry"))? => (number + 1, 1),
            Kind::TurnStarted if number == 0 => return Err(refuse()),
            Kind::TurnStarted => (number, attempt + 1),
            Kind::TurnEnded if !is_open => return Err(refuse()),
            _ if is_open => (number, attempt),
            _ => (0, 1),
        };
        let mut place = Place { seq, turn, attempt, cause };
        let origins: &[&str] = match self {
            Kind::ActionRequested | Kind::ActionRecorded => &[],
            Kind::ActionStarted => &["requested"],
            Kind::ActionSucceeded => &["requested", "running", "uncertain"],
            _ => return Ok(place),
        };
        let pending = part_of(doc, intern!(py, "pending_actions"))?;
        let pending = pending.get_item(text_of(event, intern!(py, "action"))?)?;
        let Some(pending) = pending else { return if origins.is_empty() { Ok(place) } else { Err(refuse()) } };
        let pending = pending.cast_into_exact::<PyDict>()?;
        if !origins.contains(&text_in(&pending, intern!(py, "status"))?.to_str()?) {
            return Err(refuse());
        }
        if cause == 0 {
            place.cause = number_in(&pending, intern!(py, "seq"))?;
        }
        Ok(place)
    }

    /// Writes what a legal event does to the state.
    pub fn write(self, doc: &Doc<'_>, event: &Bound<'_, PyAny>, at: &Place, out: &mut StateChanges) -> PyResult<()> {
        match self {
            Kind::TurnStarted => start_turn(doc, event, at, out),
            Kind::TurnEnded => end_turn(doc, event, out),
            Kind::DecisionMade => decide(event, at, out),
            Kind::DeadEndNoted => note_dead_end(event, at, out),
            Kind::FileChanged => change_file(doc, event, at, out),
            Kind::ActionRequested => request(doc, event, at, out),
            Kind::ActionStarted => start(event, out),
            Kind::ActionSucceeded => succeed(doc, event, out),
            Kind::ActionRecorded => record(doc, event, at, out),
            Kind::StatePatched | Kind::Said => Ok(()), // a patch is read from its bytes (seal.rs)
        }
    }
}

/// Whether a patch may be applied: operations below /data, each known. Python decides on all of /data at once.
pub fn is_usual_patch(ops: &Bound<'_, PyList>) -> PyResult<bool> {
    let py = ops.py();
    for op in ops.iter() {
        let op = op.cast_into_exact::<PyDict>()?;
        let is_known = matches!(text_in(&op, intern!(py, "op"))?.to_str()?, "add" | "remove" | "replace");
        if !is_known || !text_in(&op, intern!(py, "path"))?.to_str()?.starts_with("/data/") {
            return Ok(false);
        }
    }
    Ok(true)
}

fn start_turn(doc: &Doc<'_>, event: &Bound<'_, PyAny>, at: &Place, out: &mut StateChanges) -> PyResult<()> {
    let py = event.py();
    if text_in(doc, intern!(py, "status"))?.to_str()? != "active" {
        out.change(&[intern!(py, "status")], Some(intern!(py, "active")))?;
    }
    let now = PyDict::new(py);
    now.set_item(intern!(py, "number"), at.turn)?;
    now.set_item(intern!(py, "attempt"), at.attempt)?;
    now.set_item(intern!(py, "status"), intern!(py, "open"))?;
    put_if_any(&now, event, intern!(py, "holder"))?;
    out.change(&[intern!(py, "turn")], Some(&now))
}

fn end_turn(doc: &Doc<'_>, event: &Bound<'_, PyAny>, out: &mut StateChanges) -> PyResult<()> {
    let py = event.py();
    if !event.getattr(intern!(py, "error"))?.is_none() {
        return Err(refuse());
    }
    let (turn, holder) = (intern!(py, "turn"), intern!(py, "holder"));
    if part_of(doc, turn)?.contains(holder)? {
        out.change(&[turn, holder], None)?;
    }
    out.change(&[turn, intern!(py, "status")], Some(&event.getattr(intern!(py, "outcome"))?))
}

fn decide(event: &Bound<'_, PyAny>, at: &Place, out: &mut StateChanges) -> PyResult<()> {
    let py = event.py();
    let decision = PyDict::new(py);
    decision.set_item(intern!(py, "choice"), text_of(event, intern!(py, "choice"))?)?;
    decision.set_item(intern!(py, "turn"), at.turn)?;
    put_if_any(&decision, event, intern!(py, "because"))?;
    for name in [intern!(py, "alternatives"), intern!(py, "assumptions"), intern!(py, "evidence")] {
        let given = event.getattr(name)?.cast_into_exact::<PyTuple>()?;
        if !given.is_empty() {
            decision.set_item(name, PyList::new(py, given.iter())?)?;
        }
    }
    out.change(&[intern!(py, "decisions_made"), &PyString::new(py, &at.seq.to_string())], Some(&decision))
}

fn note_dead_end(event: &Bound<'_, PyAny>, at: &Place, out: &mut StateChanges) -> PyResult<()> {
    let py = event.py();
    let noted = PyDict::new(py);
    noted.set_item(intern!(py, "tried"), text_of(event, intern!(py, "tried"))?)?;
    noted.set_item(intern!(py, "learned"), text_of(event, intern!(py, "learned"))?)?;
    noted.set_item(intern!(py, "turn"), at.turn)?;
    out.change(&[intern!(py, "dead_ends"), &PyString::new(py, &at.seq.to_string())], Some(&noted))
}

fn change_file(doc: &Doc<'_>, event: &Bound<'_, PyAny>, at: &Place, out: &mut StateChanges) -> PyResult<()> {
    let py = event.py();
    let (files, path) = (intern!(py, "files_modified"), text_of(event, intern!(py, "path"))?);
    let changes = match part_of(doc, files)?.get_item(&path)? {
        Some(used) => number_in(used.cast_exact()?, intern!(py, "changes"))?,
        None => 0,
    };
    let used = PyDict::new(py);
    used.set_item(intern!(py, "changes"), changes + 1)?;
    used.set_item(intern!(py, "last"), at.seq)?;
    used.set_item(intern!(py, "change"), text_of(event, intern!(py, "change"))?)?;
    out.change(&[files, &path], Some(&used))?;
    let seq = at.seq.into_pyobject(py)?;
    out.change(&[intern!(py, "working_set"), intern!(py, "files"), &path], Some(&seq))
}

fn request(doc: &Doc<'_>, event: &Bound<'_, PyAny>, at: &Place, out: &mut StateChanges) -> PyResult<()> {
    let py = event.py();
    let waits = flag_of(event, intern!(py, "approval"))?;
    let pending = PyDict::new(py);
    pending.set_item(intern!(py, "tool"), text_of(event, intern!(py, "tool"))?)?;
    let status = if waits { intern!(py, "waiting") } else { intern!(py, "requested") };
    pending.set_item(intern!(py, "status"), status)?;
    pending.set_item(intern!(py, "effect"), text_of(event, intern!(py, "effect"))?)?;
    pending.set_item(intern!(py, "seq"), at.seq)?;
    pending.set_item(intern!(py, "turn"), at.turn)?;
    put_if_any(&pending, event, intern!(py, "key"))?;
    put_if_any(&pending, event, intern!(py, "input_hash"))?;
    out.change(&[intern!(py, "pending_actions"), &text_of(event, intern!(py, "action"))?], Some(&pending))?;
    count_use(doc, event, at, out)
}

fn start(event: &Bound<'_, PyAny>, out: &mut StateChanges) -> PyResult<()> {
    let py = event.py();
    let (part, action) = (intern!(py, "pending_actions"), text_of(event, intern!(py, "action"))?);
    out.change(&[part, &action, intern!(py, "status")], Some(intern!(py, "running")))?;
    let attempt = intern!(py, "attempt");
    out.change(&[part, &action, attempt], Some(&event.getattr(attempt)?))
}

fn succeed(doc: &Doc<'_>, event: &Bound<'_, PyAny>, out: &mut StateChanges) -> PyResult<()> {
    let py = event.py();
    out.change(&[intern!(py, "pending_actions"), &text_of(event, intern!(py, "action"))?], None)?;
    spend(doc, event, out)
}

fn record(doc: &Doc<'_>, event: &Bound<'_, PyAny>, at: &Place, out: &mut StateChanges) -> PyResult<()> {
    let py = event.py();
    if matches!(text_of(event, intern!(py, "outcome"))?.to_str()?, "failed" | "timed_out") {
        return Err(refuse());
    }
    count_use(doc, event, at, out)?;
    if number_of(event, intern!(py, "reused"))? == 0 {
        spend(doc, event, out)?;
    }
    Ok(())
}

fn count_use(doc: &Doc<'_>, event: &Bound<'_, PyAny>, at: &Place, out: &mut StateChanges) -> PyResult<()> {
    let py = event.py();
    let (tools, tool) = (intern!(py, "tools_used"), text_of(event, intern!(py, "tool"))?);
    let (calls, errors) = (intern!(py, "calls"), intern!(py, "errors"));
    let (called, failed) = match part_of(doc, tools)?.get_item(&tool)? {
        Some(used) => (number_in(used.cast_exact()?, calls)?, number_in(used.cast_exact()?, errors)?),
        None => (0, 0),
    };
    let used = PyDict::new(py);
    used.set_item(calls, called + 1)?;
    used.set_item(errors, failed)?;
    used.set_item(intern!(py, "last"), at.seq)?;
    out.change(&[tools, &tool], Some(&used))
}

fn spend(doc: &Doc<'_>, event: &Bound<'_, PyAny>, out: &mut StateChanges) -> PyResult<()> {
    let py = event.py();
    let cost = event.getattr(intern!(py, "cost"))?;
    let amount = |name| number_of(&cost, name);
    let tokens = amount(intern!(py, "tokens_in"))? + amount(intern!(py, "tokens_out"))?;
    let (money, time) = (intern!(py, "usd_micros"), intern!(py, "duration_us"));
    let amounts = [(intern!(py, "tokens"), tokens), (money, amount(money)?), (time, amount(time)?)];
    if amounts.iter().all(|(_, amount)| *amount == 0) {
        return Ok(());
    }
    let (budget, spent) = (intern!(py, "budget"), intern!(py, "spent"));
    let before = part_of(&part_of(doc, budget)?, spent)?;
    let after = PyDict::new(py);
    for (name, amount) in amounts {
        let so_far = if before.contains(name)? { number_in(&before, name)? } else { 0 };
        after.set_item(name, so_far.checked_add(amount).ok_or_else(refuse)?)?;
    }
    out.change(&[budget, spent], Some(&after))
}

// Values of events and of the state. What is not of the expected type is left to Python.

fn put_if_any(to: &Doc<'_>, event: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<()> {
    let text = text_of(event, name)?;
    if text.is_empty()? {
        return Ok(());
    }
    to.set_item(name, text)
}

fn part_of<'py>(doc: &Doc<'py>, name: &Bound<'py, PyString>) -> PyResult<Doc<'py>> {
    Ok(doc.get_item(name)?.ok_or_else(refuse)?.cast_into_exact()?)
}

fn text_in<'py>(doc: &Doc<'py>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyString>> {
    Ok(doc.get_item(name)?.ok_or_else(refuse)?.cast_into_exact()?)
}

fn number_in(doc: &Doc<'_>, name: &Bound<'_, PyString>) -> PyResult<i64> {
    doc.get_item(name)?.ok_or_else(refuse)?.cast_exact::<PyInt>()?.extract()
}

fn text_of<'py>(event: &Bound<'py, PyAny>, name: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyString>> {
    Ok(event.getattr(name)?.cast_into_exact()?)
}

fn number_of(event: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<i64> {
    event.getattr(name)?.cast_exact::<PyInt>()?.extract()
}

fn flag_of(event: &Bound<'_, PyAny>, name: &Bound<'_, PyString>) -> PyResult<bool> {
    Ok(event.getattr(name)?.cast_exact::<PyBool>()?.is_true())
}
