//! Carries out what the core decided, in its order, after the decision is on disk.

use std::path::Path;

use watchkeeper_core::{
    DeliveryId, Effect, InputBody,
    effect::{HookAnswer, Probe},
    input::WatchOutcome,
    time::Mono,
};
use watchkeeper_os::{clock, process::exit_watch::Watch};

use crate::{dispatcher::Dispatcher, event::HookReply, probe};

impl Dispatcher {
    pub(crate) fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.carry_out_one(effect);
        }
    }

    fn carry_out_one(&mut self, effect: Effect) {
        match effect {
            Effect::SetHold { wanted, why } => {
                tracing::info!(wanted, why, "keep awake");
                self.wish(wanted);
            }
            Effect::WatchProcess { key, incarnation, process } => {
                let outcome = match self.exits.watch(process) {
                    Ok(Watch::Kernel) => WatchOutcome::Watching,
                    Ok(Watch::Polled { why }) => {
                        tracing::warn!(%key, why, "this process is looked at every few seconds instead of watched");
                        WatchOutcome::Watching
                    }
                    Ok(Watch::AlreadyGone) => return self.gone_before_watch(key, incarnation, process),
                    Err(error) => WatchOutcome::Failed(error.to_string()),
                };
                _ = self.apply(InputBody::WatchReported { key, incarnation, process, outcome });
            }
            Effect::UnwatchProcess { process } => {
                self.exits.unwatch(&process);
            }
            Effect::FollowTranscript { key, path } => {
                self.follow_transcript(&key, Path::new(&path));
                self.look_at_state_files(&key);
            }
            Effect::UnfollowTranscript { key } => self.unfollow_transcript(key),
            Effect::Probe { key, incarnation, probe } => {
                let Some(session) = self.core.session(&key) else { return };
                let since = match probe {
                    Probe::YoungerChild => self.core.locked_since(&key),
                    Probe::Inactivity | Probe::BackgroundQuiet => None,
                };
                let answer = probe::look(&session, since);
                _ = self.apply(InputBody::ProbeAnswered { key, incarnation, probe, answer });
            }
            Effect::AnswerHook { delivery, answer } => self.answer_hook(delivery, &answer),
            Effect::HoldHook { delivery, until } => self.hold_hook(delivery, until),
            Effect::Transitioned { key, from, to, evidence, .. } => {
                let from = from.map_or("new", watchkeeper_core::view::ShownState::name);
                tracing::info!(%key, from, to = to.name(), evidence, "session");
            }
            Effect::Webhook { .. } => {
                // Nobody to tell: this build has no sender, and says so instead of pretending.
                self.counters.add("webhook.no_sender");
                _ = self.apply(InputBody::WebhookReported { accepted: false });
            }
            Effect::PlaySound { .. } => {
                self.counters.add("sound.no_player");
                _ = self.apply(InputBody::SoundEnded);
            }
            Effect::AskBeforeSleep { .. } | Effect::WithdrawQuestion { .. } => {
                self.counters.add("question.no_sender");
            }
            Effect::RequestSuspend { .. } => {
                self.counters.add("suspend.not_supported");
                let message = "this build does not put the machine to sleep".to_owned();
                _ = self.apply(InputBody::SuspendReported { accepted: false, message });
            }
            Effect::RecordSuspend { mode, reason, success, message } => {
                tracing::info!(?mode, ?reason, success, message, "suspend");
            }
            // On Linux the lid lock is all there is; elsewhere the lid action is left alone.
            Effect::BackUpLidAction | Effect::ChangeLidAction | Effect::RestoreLidAction => {}
            Effect::ExitRuntime => self.stop("nothing left to watch".to_owned()),
        }
    }

    fn answer_hook(&mut self, delivery: DeliveryId, answer: &HookAnswer) {
        let Some(held) = self.held.remove(&delivery) else { return };
        let text = self.declared.adapters().get(held.agent).and_then(|a| a.reply(&held.event, answer));
        let reply = text.map_or(HookReply::Taken, HookReply::Print);
        _ = held.reply.try_send(reply); // the hook may have left
    }

    fn hold_hook(&mut self, delivery: DeliveryId, until: Mono) {
        let ms = until.since(clock::now().mono).as_millis();
        let ms = u32::try_from(ms).unwrap_or(u32::MAX);
        if let Some(held) = self.held.get_mut(&delivery) {
            held.waits = true;
            _ = held.reply.try_send(HookReply::Wait { ms }); // the hook may have left
        }
    }

    fn look_at_state_files(&mut self, key: &watchkeeper_core::SessionKey) {
        for stated in self.follower.state_files_of(key) {
            self.agent_stated(stated);
        }
    }
}
