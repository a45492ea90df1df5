//! What the runtime's own life means for sessions: a restart of the shell, a sleep of the machine, and when nothing
//! keeps the runtime alive any more.

use crate::{
    core::Core,
    effect::Effect,
    identity::SessionKey,
    marks::Mark,
    ordering::When,
    session::{Deferred, Phase, Session, Watch},
    signal::{Lineage, Source},
    step::Step,
    time::{Mono, Now},
    work::{Begun, Work},
};

impl Session {
    /// Watches and followed files are gone; moments of a clock that began again are carried over.
    pub(crate) fn restarted(
        &mut self,
        shift: &impl Fn(Mono) -> Mono,
        watch: bool,
        clean: bool,
        step: &mut Step,
    ) {
        for at in [&mut self.refreshed, &mut self.heard, &mut self.quiet_from] {
            *at = shift(*at);
        }
        self.drained = self.drained.map(shift);
        self.compaction = self.compaction.map(|(at, background)| (shift(at), background));
        if let Some(lock) = &mut self.lock {
            lock.since = shift(lock.since);
            lock.cpu = lock.cpu.map(|(ms, at)| (ms, shift(at)));
        }
        // An answer to a look of the former runtime never comes.
        self.look = crate::session::Look::Based;
        self.baseline = None;
        if self.is_ended() {
            return;
        }
        let state = if watch { Watch::Asked } else { Watch::BySetting };
        let processes = self.all_processes();
        for process in &mut self.processes {
            process.watch = state.clone();
        }
        if watch {
            for process in processes {
                self.watch(process, step);
            }
        }
        if let Some(path) = &self.transcript {
            step.effect(Effect::FollowTranscript { key: self.key.clone(), path: path.clone() });
        }
        let rule = if clean { "after an orderly stop" } else { "after a crash" };
        self.evidence.push(&step.now, None, Source::Recovery, "runtime_started", rule);
    }

    /// A resume renews every grace.
    pub(crate) fn woke(&mut self, now: &Now) {
        self.refreshed = now.mono;
        self.heard = now.mono;
        self.quiet_from = now.mono;
        self.look = crate::session::Look::Fresh;
        self.baseline = None;
        self.silent_since_wake = true;
        self.drained = self.drained.map(|_| now.mono);
        self.compaction = self.compaction.map(|(_, background)| (now.mono, background));
    }

    /// The session that took this one's place, where the agent named it.
    pub(crate) fn successor(&self) -> Option<String> {
        self.lineage.iter().rev().find_map(|link| match link {
            Lineage::ClearedTo(id) | Lineage::ContinuedIn(id) => Some(id.clone()),
            Lineage::ForkedFrom(_) | Lineage::ClearedFrom(_) | Lineage::Parent(_) => None,
        })
    }

    /// Takes over the live work of a replaced session.
    pub(crate) fn inherit(
        &mut self,
        live: Vec<(String, Work)>,
        from: &SessionKey,
        source: Source,
        when: When,
        step: &mut Step,
    ) {
        for (id, mut work) in live {
            work.when = when;
            if matches!(self.track(&id, work, step), Begun::New | Begun::Reopened) {
                step.mark(Mark::WorkStarted);
            }
        }
        self.link(Lineage::ClearedFrom(from.id.clone()));
        if self.phase == Phase::Idle && self.work.any_defers() {
            step.mark(Mark::IdleToBackground);
            self.phase = Phase::Background;
            self.deferred = Some(Deferred::Settled);
            self.quiet_from = step.now.mono;
        }
        self.evidence.push(
            &step.now,
            when.boot_at(&step.now),
            source,
            "inherited",
            "live work of the session it replaced",
        );
    }
}

impl Core {
    /// Whether anything needs the runtime.
    fn is_needed(&self) -> bool {
        let machine = &self.state.machine;
        !self.index.active.is_empty()
            || !self.index.protecting.is_empty()
            || !machine.leases.is_empty()
            || !machine.hooks.is_empty()
            || machine.observers > 0
            || machine.plan.is_some()
    }

    /// Arms the exit when nothing needs the runtime, disarms it otherwise.
    pub(crate) fn follow_lifetime(&mut self, step: &mut Step) {
        let needed = self.is_needed();
        let machine = &mut self.state.machine;
        match self.state.settings.cleanup_delay {
            Some(delay) if !needed => {
                let at = *machine.idle_since.get_or_insert(step.now.mono);
                if delay.is_zero() && !machine.exit_asked {
                    machine.exit_asked = true;
                    step.mark(Mark::ExitRuntime);
                    step.effect(Effect::ExitRuntime);
                }
                machine.cleanup = (!machine.exit_asked).then(|| at.after(delay));
            }
            Some(_) | None => {
                machine.idle_since = None;
                machine.cleanup = None;
                machine.exit_asked = false;
            }
        }
    }

    pub(crate) fn cleanup_due(&mut self, step: &mut Step) {
        step.mark(Mark::DueCleanup);
        step.mark(Mark::ExitRuntime);
        self.state.machine.cleanup = None;
        self.state.machine.exit_asked = true;
        step.effect(Effect::ExitRuntime);
    }
}
