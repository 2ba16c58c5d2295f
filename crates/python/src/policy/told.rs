//! Classes for the arguments of policies: fields of a type of the core as attributes.

use anabranch_core::time::Duration;

/// The Python form of a value: numbers unchanged, times in seconds.
pub(super) trait Tell {
    type Out;
    fn tell(self) -> Self::Out;
}

macro_rules! same {
    ($($type:ty),*) => { $(
        impl Tell for $type {
            type Out = Self;
            fn tell(self) -> Self {
                self
            }
        }
    )* };
}

same!(bool, f64, u8, u16, u32, u64, usize);

impl Tell for Duration {
    type Out = f64;
    fn tell(self) -> f64 {
        self.as_secs_f64()
    }
}

impl<T: Tell> Tell for Option<T> {
    type Out = Option<T::Out>;
    fn tell(self) -> Option<T::Out> {
        self.map(T::tell)
    }
}

/// Defines a Python class around a type of the core, with an attribute for each of these fields, of
/// this Python type. Other methods may follow.
macro_rules! told {
    ($(#[$doc:meta])* $class:ident($core:ty) { $($field:ident: $type:ty),* $(,)? } $($more:tt)*) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "anabranch.policy")]
        pub(crate) struct $class($core);

        #[pymethods]
        impl $class {
            $(
                #[getter]
                fn $field(&self) -> $type {
                    crate::policy::told::Tell::tell(self.0.$field)
                }
            )*

            $($more)*

            fn __repr__(&self) -> String {
                format!("{:?}", self.0)
            }
        }
    };
}

pub(super) use told;
