//! Which coding agents are here: their program on PATH, or their configuration folder.

use std::path::PathBuf;

use watchkeeper_agents::install::{ALL, Installer};

use super::{context::Context, system};

/// Most folders of PATH that are looked at; the rest is passed over.
const PATH_FOLDERS_MAX: usize = 256;

/// One agent that Watchkeeper has hooks for.
#[derive(Debug, Clone)]
pub(crate) struct FoundAgent {
    pub(crate) installer: &'static Installer,
    /// The first program of its name on PATH.
    pub(crate) program: Option<PathBuf>,
    /// Its configuration folder, there or not.
    pub(crate) home: PathBuf,
    pub(crate) home_exists: bool,
    /// The user's home folder, while no variable moves the agent's.
    pub(crate) user_home: Option<PathBuf>,
}

impl FoundAgent {
    /// Whether there is anything of the agent on this machine.
    pub(crate) const fn is_present(&self) -> bool {
        self.program.is_some() || self.home_exists
    }
}

/// All agents the context asks for, present or not.
pub(crate) fn find_agents(context: &Context) -> Vec<FoundAgent> {
    ALL.into_iter()
        .filter(|installer| context.wants(installer.agent))
        .map(|installer| {
            let home = context.agent_home(installer);
            FoundAgent {
                installer,
                program: find_program(context, installer.programs),
                home_exists: home.is_dir(),
                home,
                user_home: (!context.moves(installer)).then(|| context.home.clone()),
            }
        })
        .collect()
}

fn find_program(context: &Context, names: &[&str]) -> Option<PathBuf> {
    let path = context.path.as_ref()?;
    let names: Vec<String> = names.iter().flat_map(|name| system::program_names(name)).collect();
    std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .take(PATH_FOLDERS_MAX)
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|program| std::fs::metadata(program).is_ok_and(|found| system::is_executable(&found)))
}
