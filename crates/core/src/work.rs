//! Tracked background work of one session, and its tools in flight. Owns: what is live, what was finished and when,
//! which of it still counts. Ids only, never counters: starts and ends of real agents do not balance.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

use crate::{
    identity::ProcessRef,
    ordering::When,
    signal::{Thread, WorkItem, WorkKind},
    table,
    time::Wall,
};

/// Live items a session may have. Further ones are refused and recorded: that many protect already.
pub const WORK_MAX_ITEMS: usize = 512;
/// Finished ids remembered to block older starts. At the limit the one finished first is forgotten.
pub const FINISHED_MAX: usize = 512;
/// Tools in flight a session may have. At the limit the oldest is forgotten.
pub const TOOLS_MAX: usize = 256;
/// Finished tools remembered to block late starts of them. At the limit the oldest is forgotten.
pub const TOOLS_DONE_MAX: usize = 16;

/// The id under which "a shell still runs" is tracked when the agent says so without naming one.
pub(crate) const STATED_SHELL: &str = "agent_state:shell";

/// Tools whose command goes on when Codex is interrupted: its hooks say `Bash`, its rollout `exec_command` and older
/// names (Codex 0.171).
const COMMAND_TOOLS: [&str; 6] =
    ["Bash", "exec_command", "shell", "shell_command", "local_shell", "unified_exec"];

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) kind: WorkKind,
    pub(crate) label: Option<String>,
    pub(crate) process: Option<ProcessRef>,
    pub(crate) when: When,
    pub(crate) since: Wall,
    /// Used no CPU and wrote nothing for `background_quiet`.
    pub(crate) quiet: bool,
    /// Past `work_max`.
    pub(crate) abandoned: bool,
}

impl Work {
    /// Whether it can defer a stop. A schedule is none until it runs, and then it is a turn.
    pub(crate) fn defers(&self) -> bool {
        self.kind != WorkKind::Scheduled
    }

    /// Whether it keeps the machine awake.
    pub(crate) fn counts(&self) -> bool {
        self.defers() && !self.quiet && !self.abandoned
    }

    /// Whether silence of its processes says something about it.
    pub(crate) fn can_be_quiet(&self) -> bool {
        matches!(self.kind, WorkKind::Shell | WorkKind::Terminal)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) when: When,
    pub(crate) thread: Thread,
}

/// What a start of work came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begun {
    New,
    Reopened,
    Known,
    Blocked,
    Full,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct WorkSet {
    pub(crate) live: BTreeMap<String, Work>,
    finished: BTreeMap<String, When>,
    /// In the order in which they were told of: few at a time.
    pub(crate) tools: Vec<(String, Tool)>,
    /// Hashes of their ids; a false hit only keeps a late start from being tracked.
    tools_done: VecDeque<(u64, When)>,
}

impl WorkSet {
    pub(crate) fn any_defers(&self) -> bool {
        self.live.values().any(Work::defers)
    }

    pub(crate) fn any_counts(&self) -> bool {
        self.live.values().any(Work::counts)
    }

    pub(crate) fn deferring(&self) -> usize {
        self.live.values().filter(|w| w.defers()).count()
    }

    pub(crate) fn start(&mut self, id: &str, work: Work) -> Begun {
        if let Some(known) = self.live.get_mut(id) {
            known.label = work.label.or(known.label.take());
            known.process = work.process.or(known.process);
            known.abandoned = false;
            return Begun::Known;
        }
        let reopened = match self.finished.get(id) {
            Some(end) if !work.when.later_than(end) => return Begun::Blocked,
            Some(_) => true,
            None => false,
        };
        if self.live.len() >= WORK_MAX_ITEMS {
            return Begun::Full;
        }
        self.finished.remove(id);
        self.live.insert(id.to_owned(), work);
        if reopened { Begun::Reopened } else { Begun::New }
    }

    /// Whether anything live ended by this. A finish older than the start it would end is none.
    pub(crate) fn finish(&mut self, id: &str, when: When) -> bool {
        let ended = match self.live.get(id) {
            Some(work) if !when.later_than(&work.when) => return false,
            Some(_) => self.live.remove(id).is_some(),
            None => false,
        };
        remember(&mut self.finished, id, when, FINISHED_MAX);
        ended
    }

    /// Applies a complete list; returns how many were finished by absence and how many begun.
    pub(crate) fn level(
        &mut self,
        live: &[WorkItem],
        except: Option<&str>,
        when: When,
        now: Wall,
    ) -> (usize, usize) {
        let absent: Vec<String> = self
            .live
            .iter()
            .filter(|(id, work)| {
                Some(id.as_str()) != except
                    && when.later_than(&work.when)
                    && !live.iter().any(|item| item.id == **id)
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in &absent {
            self.finish(id, when);
        }
        let mut begun = 0;
        for item in live.iter().filter(|item| Some(item.id.as_str()) != except) {
            let work = Work {
                kind: item.kind,
                label: item.label.clone(),
                process: None,
                when,
                since: now,
                quiet: false,
                abandoned: false,
            };
            begun += usize::from(matches!(self.start(&item.id, work), Begun::New | Begun::Reopened));
        }
        (absent.len(), begun)
    }

    pub(crate) fn tool_started(&mut self, id: &str, tool: Tool) {
        let hash = table::hash_of(id);
        let over = self.tools_done.iter().any(|(done, end)| *done == hash && !tool.when.later_than(end));
        if over || self.has_tool(id) {
            return;
        }
        if self.tools.len() >= TOOLS_MAX {
            self.tools.remove(0);
        }
        self.tools.push((id.to_owned(), tool));
    }

    pub(crate) fn tool_finished(&mut self, id: &str, when: When) {
        self.tools.retain(|(known, _)| known != id);
        if self.tools_done.len() >= TOOLS_DONE_MAX {
            self.tools_done.pop_front();
        }
        self.tools_done.push_back((table::hash_of(id), when));
    }

    pub(crate) fn has_tool(&self, id: &str) -> bool {
        self.tools.iter().any(|(known, _)| known == id)
    }

    /// The turn of this thread is over: what it had in flight is not any more. Late starts of it stay blocked.
    pub(crate) fn drop_tools(&mut self, thread: &Thread, when: When) {
        let over: Vec<String> = self
            .tools
            .iter()
            .filter(|(_, t)| t.thread == *thread && when.later_than(&t.when))
            .map(|(id, _)| id.clone())
            .collect();
        for id in over {
            self.tool_finished(&id, when);
        }
    }

    /// Commands in flight go on as background work; `locked`: the tool that still waits for its permission, so that
    /// its command never began. Returns how many.
    pub(crate) fn tools_to_work(&mut self, locked: Option<&str>, when: When, now: Wall) -> usize {
        let commands: Vec<(String, Tool)> = self
            .tools
            .iter()
            .filter(|(id, t)| {
                t.thread == Thread::Main
                    && COMMAND_TOOLS.contains(&t.name.as_str())
                    && locked != Some(id.as_str())
                    && when.later_than(&t.when)
            })
            .map(|(id, t)| (id.clone(), t.clone()))
            .collect();
        let mut moved = 0;
        for (id, tool) in commands {
            let work = Work {
                kind: WorkKind::Terminal,
                label: Some(tool.name),
                process: None,
                when: tool.when,
                since: now,
                quiet: false,
                abandoned: false,
            };
            moved += usize::from(matches!(self.start(&id, work), Begun::New | Begun::Reopened));
        }
        moved
    }
}

fn remember(map: &mut BTreeMap<String, When>, id: &str, when: When, limit: usize) {
    match map.get_mut(id) {
        Some(known) if when.later_than(known) => *known = when,
        Some(_) => {}
        None => {
            if map.len() >= limit {
                let oldest = map.iter().min_by_key(|(_, w)| w.received).map(|(id, _)| id.clone());
                if let Some(oldest) = oldest {
                    map.remove(&oldest);
                }
            }
            map.insert(id.to_owned(), when);
        }
    }
}
