//! The native core of wakelog: the work of an append that is worth doing faster.
//!
//! Python has the same functions, and they are the specification (codec/, state/, redaction/). Unusual input is an
//! error here, with any text: the caller then runs the Python function, which decides the result. So odd input has one
//! meaning. `tests/native` compares both sides on generated input.

mod chain;
mod changes;
mod effects;
mod encode;
mod pack;
mod scan;
mod seal;
mod values;

use pyo3::prelude::*;

/// The version of the interface; native.py has the same number.
const INTERFACE: u32 = 8;

/// Shorter work keeps the interpreter lock: releasing it and waiting for it would take longer.
const WORTH_RELEASING: usize = 20_000;

/// Runs work that needs no Python. If it takes long, by an estimate in nanoseconds, other threads run meanwhile.
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
    module.add_function(wrap_pyfunction!(chain::check_records, module)?)?;
    module.add_function(wrap_pyfunction!(pack::pack, module)?)?;
    module.add_function(wrap_pyfunction!(pack::unpack, module)?)?;
    module.add_function(wrap_pyfunction!(values::is_plain, module)?)?;
    module.add_function(wrap_pyfunction!(values::common_head, module)?)?;
    module.add_function(wrap_pyfunction!(values::has_no_float, module)?)?;
    module.add_class::<changes::StateChanges>()?;
    module.add_class::<encode::Encoder>()?;
    module.add_class::<seal::Sealer>()?;
    module.add_class::<scan::Scanner>()
}
