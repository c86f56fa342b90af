//! The native core of wakelog: a few functions over bytes, one call a commit each.
//!
//! Python has the same functions and they are the specification (codec/, redaction/). Here is
//! only what is worth doing faster. Anything unusual is an error, whatever the error says: the caller then runs the
//! Python function, so that every odd input has one meaning. `tests/native` compares the two on anything.

mod chain;
mod changes;
mod encode;
mod pack;
mod scan;
mod values;

use pyo3::prelude::*;

/// What this and the Python side must agree on (native.py).
const INTERFACE: u32 = 4;

/// Work of fewer nanoseconds keeps the interpreter lock: giving it up and waiting for it takes longer.
const WORTH_RELEASING: usize = 20_000;

/// Does work that needs no Python, beside other threads where it is long: about so many nanoseconds.
fn apart<T: Send>(py: Python<'_>, nanoseconds: usize, work: impl FnOnce() -> T + Send) -> T {
    if nanoseconds < WORTH_RELEASING {
        work()
    } else {
        py.detach(work)
    }
}

#[pymodule]
fn wakelog_core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("INTERFACE", INTERFACE)?;
    module.add("ZSTD_VERSION", pack::zstd_version())?;
    module.add_function(wrap_pyfunction!(chain::seal_records, module)?)?;
    module.add_function(wrap_pyfunction!(chain::hash_records, module)?)?;
    module.add_function(wrap_pyfunction!(pack::pack, module)?)?;
    module.add_function(wrap_pyfunction!(pack::unpack, module)?)?;
    module.add_function(wrap_pyfunction!(values::is_plain, module)?)?;
    module.add_class::<changes::StateChanges>()?;
    module.add_class::<encode::Encoder>()?;
    module.add_class::<scan::Scanner>()
}
