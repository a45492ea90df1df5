//! Keeps an actor alive: one that panics is begun again, and until then nothing that it said stands.

use std::{future::Future, time::Duration};

use tokio::{sync::mpsc, task::JoinSet, time::sleep};
use watchkeeper_core::{InputBody, input::Known};

use crate::event::Event;

/// After a panic so long passes before the next try: a fault that lasts must not fill the log.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Runs what `begin` makes until it ends by itself or the daemon is gone. `unsaid` takes back what the actor reported last: what it
/// watched or held, nobody watches and holds any more.
pub(crate) async fn keep<A>(
    name: &'static str,
    mut begin: impl FnMut() -> A,
    unsaid: &[InputBody],
    events: mpsc::Sender<Event>,
) where
    A: Future<Output = ()> + Send + 'static,
{
    loop {
        // A set ends what is in it when it is dropped: an actor whose keeper is ended does not stay.
        let mut running = JoinSet::new();
        running.spawn(begin());
        match running.join_next().await {
            Some(Err(error)) if error.is_panic() => {}
            Some(_) | None => return,
        }
        tracing::error!(actor = name, "a part of the daemon failed and is begun again");
        if events.send(Event::ActorFailed { unsaid: unsaid.to_vec() }).await.is_err() {
            return;
        }
        tokio::select! {
            () = sleep(AGAIN_AFTER) => {}
            () = events.closed() => return,
        }
    }
}

/// With the actor its locks are closed.
pub(crate) fn nothing_held() -> [InputBody; 1] {
    [InputBody::HoldReported { held: Vec::new(), refused: Vec::new() }]
}

/// Nobody looks at the machine.
pub(crate) fn nothing_seen() -> [InputBody; 3] {
    [
        InputBody::Lid { state: Known::Unknown },
        InputBody::Displays { external_on: Known::Unknown },
        InputBody::Power { on_battery: Known::Unknown, percent: Known::Unknown },
    ]
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    };

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_actor_that_panics_is_taken_back_and_begun_again() {
        let (events, mut queue) = mpsc::channel(8);
        let begun = Arc::new(AtomicU32::new(0));
        let begin = {
            let (begun, events) = (Arc::clone(&begun), events.clone());
            move || {
                let (number, events) = (begun.fetch_add(1, Ordering::Relaxed), events.clone());
                async move {
                    assert!(number != 0, "a planted panic");
                    _ = events.send(Event::HookUnusable { why: "it runs" }).await;
                }
            }
        };
        let kept = tokio::spawn(async move { keep("test", begin, &nothing_held(), events).await });
        assert!(
            matches!(queue.recv().await, Some(Event::ActorFailed { unsaid }) if unsaid == nothing_held())
        );
        assert!(matches!(queue.recv().await, Some(Event::HookUnusable { .. })));
        kept.await.unwrap();
        assert_eq!(begun.load(Ordering::Relaxed), 2, "an orderly end is one");
    }

    #[tokio::test(start_paused = true)]
    async fn with_its_keeper_an_actor_ends() {
        let (events, _queue) = mpsc::channel(8);
        let (held, ended) = tokio::sync::oneshot::channel::<()>();
        let mut held = Some(held);
        let begin = move || {
            let held = held.take();
            async move {
                std::future::pending::<()>().await;
                drop(held);
            }
        };
        let kept = tokio::spawn(async move { keep("test", begin, &[], events).await });
        tokio::task::yield_now().await;
        kept.abort();
        assert!(ended.await.is_err());
    }
}
