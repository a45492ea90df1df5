//! A transport that takes no further request while too many wait for their answers: a client that asks and does not read
//! fills the pipe to itself, not the memory of the server.

use std::{
    collections::HashMap,
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rmcp::{
    RoleServer,
    model::{ClientNotification, JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::{sync::Notify, time::timeout};

/// Requests whose answers have not been written; further ones stay unread.
const OPEN_MAX: usize = 256;
/// How long the client may leave all of them unread; then it counts as gone. Longer than any answer takes to come.
const UNREAD_WITHIN: Duration = Duration::from_secs(60);
/// Requests of one client under ids that are still open; after these it counts as broken. A sound one makes none.
const PASSED_OVER_MAX: usize = 10_000;

/// A transport and the requests that are open on it.
pub(super) struct WithRoom<T> {
    transport: T,
    open: Arc<Open>,
    /// Requests that came under an id that was still open.
    passed_over: usize,
}

#[derive(Debug, Default)]
struct Open {
    requests: Mutex<HashMap<RequestId, Stage>>,
    /// Told when one of them is open no more.
    freed: Notify,
}

/// How far a request is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Asked,
    /// Its answer waits to be written; calling it off changes nothing any more.
    Answering,
}

impl<T> WithRoom<T> {
    pub(super) fn new(transport: T) -> Self {
        Self { transport, open: Arc::new(Open::default()), passed_over: 0 }
    }
}

impl Open {
    fn requests(&self) -> MutexGuard<'_, HashMap<RequestId, Stage>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False for an id that is open: two requests of one id would be one here and two in memory.
    fn asked(&self, id: &RequestId) -> bool {
        let mut requests = self.requests();
        let is_new = !requests.contains_key(id);
        if is_new {
            requests.insert(id.clone(), Stage::Asked);
        }
        is_new
    }

    fn answering(&self, id: &RequestId) {
        self.requests().insert(id.clone(), Stage::Answering);
    }

    fn answered(&self, id: &RequestId) {
        self.requests().remove(id);
        self.freed.notify_one();
    }

    /// Nobody will answer it, unless the answer is on its way already: that one takes its room until it is written.
    fn called_off(&self, id: &RequestId) {
        let mut requests = self.requests();
        if requests.get(id) == Some(&Stage::Asked) {
            requests.remove(id);
            self.freed.notify_one();
        }
    }

    /// Whether another request may be read; waits for it.
    async fn has_room(&self) -> bool {
        while self.requests().len() >= OPEN_MAX {
            if timeout(UNREAD_WITHIN, self.freed.notified()).await.is_err() {
                return false;
            }
        }
        true
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for WithRoom<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = &answered {
            self.open.answering(id);
        }
        let sending = self.transport.send(message);
        let open = Arc::clone(&self.open);
        async move {
            let sent = sending.await;
            if let Some(id) = answered {
                open.answered(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        while self.open.has_room().await {
            let message = self.transport.receive().await?;
            match &message {
                JsonRpcMessage::Request(request) if !self.open.asked(&request.id) => {
                    self.passed_over += 1;
                    if self.passed_over > PASSED_OVER_MAX {
                        return None;
                    }
                    continue;
                }
                JsonRpcMessage::Notification(notification) => {
                    if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.open.called_off(id);
                    }
                }
                JsonRpcMessage::Request(_) | JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
            }
            return Some(message);
        }
        None
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, pin::Pin, task::Poll};

    use rmcp::model::{ErrorData, NumberOrString};
    use serde_json::json;

    use super::*;

    /// A client that never stops; told what it says first, second and so on.
    struct Asking {
        next: usize,
        says: fn(usize) -> serde_json::Value,
    }

    fn ask(number: usize) -> serde_json::Value {
        json!({"jsonrpc": "2.0", "id": number, "method": "ping"})
    }

    fn call_off(number: usize) -> serde_json::Value {
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    }

    fn answer(number: i64) -> TxJsonRpcMessage<RoleServer> {
        let error = ErrorData::internal_error("", None);
        JsonRpcMessage::error(error, Some(NumberOrString::Number(number)))
    }

    impl Transport<RoleServer> for Asking {
        type Error = Infallible;

        fn send(
            &mut self,
            _answer: TxJsonRpcMessage<RoleServer>,
        ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
            std::future::ready(Ok(()))
        }

        async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
            let message = (self.says)(self.next);
            self.next += 1;
            Some(serde_json::from_value(message).unwrap())
        }

        async fn close(&mut self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    /// Whether the next message is read without waiting.
    async fn reads(transport: &mut WithRoom<Asking>) -> bool {
        let mut receiving = std::pin::pin!(transport.receive());
        std::future::poll_fn(|context| Poll::Ready(receiving.as_mut().poll(context).is_ready())).await
    }

    async fn full(says: fn(usize) -> serde_json::Value) -> WithRoom<Asking> {
        let mut transport = WithRoom::new(Asking { next: 0, says });
        for _ in 0..OPEN_MAX {
            assert!(reads(&mut transport).await);
        }
        transport
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_read_until_something_is_answered() {
        let mut transport = full(ask).await;
        assert!(!reads(&mut transport).await);
        let answer = || answer(7);
        let sending = transport.send(answer());
        assert!(!reads(&mut transport).await, "not written yet");
        assert_eq!(sending.await, Ok(()));
        assert!(reads(&mut transport).await);
        assert!(!reads(&mut transport).await);
        // The same answer twice makes no more room.
        assert_eq!(transport.send(answer()).await, Ok(()));
        assert!(!reads(&mut transport).await);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_reads_counts_as_gone() {
        assert!(full(ask).await.receive().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_called_off_is_open_no_more() {
        let mut transport = full(|number| match number {
            5 => call_off(3),
            number => ask(number),
        })
        .await;
        assert!(reads(&mut transport).await && reads(&mut transport).await);
        assert!(!reads(&mut transport).await);
    }

    /// Two requests of one id would take one room and the memory of two.
    #[tokio::test(start_paused = true)]
    async fn a_request_whose_id_is_open_is_passed_over() {
        let mut transport = WithRoom::new(Asking {
            next: 0,
            says: |number| ask(if (1..=1000).contains(&number) { 0 } else { number }),
        });
        for id in [0, 1001] {
            let Some(JsonRpcMessage::Request(request)) = transport.receive().await else { panic!("{id}") };
            assert_eq!(request.id, NumberOrString::Number(id));
        }
        assert_eq!((transport.passed_over, transport.open.requests().len()), (1000, 2));
        // Answered, the id is as good as a new one.
        assert_eq!(transport.send(answer(0)).await, Ok(()));
        transport.transport.says = |_| ask(0);
        assert!(reads(&mut transport).await);
        // Nothing else comes any more: the client is broken.
        assert!(transport.receive().await.is_none());
        assert_eq!(transport.transport.next, 1 + 1000 + 1 + 1 + PASSED_OVER_MAX - 1000 + 1);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_on_its_way_takes_its_room_though_the_request_was_called_off() {
        // Asks, and when the answer is on its way calls it off.
        let mut transport = WithRoom::new(Asking {
            next: 0,
            says: |number| if number % 2 == 0 { ask(number) } else { call_off(number - 1) },
        });
        let mut on_their_way: Vec<Pin<Box<dyn Future<Output = _>>>> = Vec::new();
        while on_their_way.len() <= OPEN_MAX {
            if !reads(&mut transport).await {
                break;
            }
            let asked = i64::try_from(transport.transport.next).unwrap() - 1;
            on_their_way.push(Box::pin(transport.send(answer(asked))));
            if !reads(&mut transport).await {
                break;
            }
        }
        assert_eq!((on_their_way.len(), transport.open.requests().len()), (OPEN_MAX, OPEN_MAX));
        assert_eq!(on_their_way.swap_remove(9).await, Ok(()));
        assert!(reads(&mut transport).await);
    }
}
