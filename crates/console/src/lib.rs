//! What every command of the program has in common with its user.
//!
//! It knows no command. A command hands in what is its own, such as the actions that a signal runs, or a function that
//! tells the exit code of its errors.
#![forbid(unsafe_code)]

mod columns;
mod effects;
mod exit_code;
mod failure;
mod folders;
mod form;
mod interrupt;
mod kept;
mod logging;
mod noise;
mod output;
mod paint;
mod progress;
mod schemes;
mod settings;

pub use columns::{mode_text, scaled, time_text};
pub use effects::{
    BY_SSH, Class, Effect, Effects, Given, LEAVE, Other, OtherArgs, Others, Role, Row, Table,
    Value, Way, all, other, row, ssh,
};
pub use exit_code::{CodeOf, Exit, ExitCode, ScpCode, leave, misuse, refuse_without_ssh};
pub use failure::{At, Failure, causes, causes_of, headline, no_listener, one_line, with_remedy};
pub use folders::{Folder, NoFolder, begun};
pub use form::{Document, DocumentArgs, Form, FormArgs};
pub use interrupt::{Interrupt, Registration, Scope, ScopeId, StopCause, survive_file_size_limit};
pub use kept::Kept;
pub use logging::{LogError, start_logging};
pub use noise::{Noise, NoiseArgs};
pub use output::{announce, print, print_error, printed, say, unwritten};
pub use paint::{Color, Stream, Tone};
pub use progress::{
    Audience, Board, Counts, Ending, Failed, LimitedBy, Message, MeterId, PathFigures, Screen,
    Totals, UPDATE_EVERY, decision, print_end, print_event,
};
pub use schemes::{host_by_ssh, remedy_for_scheme};
pub use settings::{Cluster, ConfigArgs, Key, Keys, Mistake, Settings, SettingsError, config};
