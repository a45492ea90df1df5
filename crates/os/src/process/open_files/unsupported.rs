//! Systems without a limit of this kind (Windows has 16 million handles a process).

use super::OpenFiles;

/// Does nothing: there is no limit to raise.
pub fn raise() -> OpenFiles {
    OpenFiles { before: None, after: None }
}
