//! Who is told how the far side is reached.

use std::fmt;
use std::sync::Arc;

/// A function of the application that is told, in words for its user, each step on the way to the far side. By default
/// nobody is told.
#[derive(Clone, Default)]
pub struct Observer(Option<Arc<Tell>>);

type Tell = dyn Fn(&str) + Send + Sync;

impl Observer {
    /// Calls `tell` with each step, from the thread that opens the way.
    pub fn new(tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(tell)))
    }

    pub(crate) fn tell(&self, step: fmt::Arguments<'_>) {
        if let Some(tell) = &self.0 {
            tell(&step.to_string());
        }
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Observer(Some)" } else { "Observer(None)" })
    }
}
