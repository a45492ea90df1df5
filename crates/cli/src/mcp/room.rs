//! A transport that takes no further request while too many wait for their answers: a client that asks and does not read
//! fills the pipe to itself, not the memory of the server.

use std::{
    collections::HashSet,
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

/// A transport and the requests that are open on it.
pub(super) struct WithRoom<T> {
    transport: T,
    open: Arc<Open>,
}

#[derive(Debug, Default)]
struct Open {
    ids: Mutex<HashSet<RequestId>>,
    /// Told when one of them is answered.
    answered: Notify,
}

impl<T> WithRoom<T> {
    pub(super) fn new(transport: T) -> Self {
        Self { transport, open: Arc::new(Open::default()) }
    }
}

impl Open {
    fn ids(&self) -> MutexGuard<'_, HashSet<RequestId>> {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked(&self, id: &RequestId) {
        self.ids().insert(id.clone());
    }

    fn answered(&self, id: &RequestId) {
        self.ids().remove(id);
        self.answered.notify_one();
    }

    /// Whether another request may be read; waits for it.
    async fn has_room(&self) -> bool {
        while self.ids().len() >= OPEN_MAX {
            if timeout(UNREAD_WITHIN, self.answered.notified()).await.is_err() {
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
        if !self.open.has_room().await {
            return None;
        }
        let message = self.transport.receive().await?;
        match &message {
            JsonRpcMessage::Request(request) => self.open.asked(&request.id),
            // Nobody will answer what was called off.
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) = &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.open.answered(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        Some(message)
    }

    fn close(&mut self) -> impl Future<Output = Result<(), Self::Error>> + Send {
        self.transport.close()
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, task::Poll};

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
        let answer = || {
            let error = ErrorData::internal_error("", None);
            JsonRpcMessage::error(error, Some(NumberOrString::Number(7)))
        };
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
            5 => json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}),
            number => ask(number),
        })
        .await;
        assert!(reads(&mut transport).await && reads(&mut transport).await);
        assert!(!reads(&mut transport).await);
    }
}
