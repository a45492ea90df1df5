//! Systems without a hold.

use super::{Kind, Notice, Refused, Standing};

const WHY_NOT: &str = "this system has no keep-awake that Watchkeeper knows";

#[derive(Debug, Default)]
pub struct Inhibitor;

#[derive(Debug)]
pub struct Held {
    kind: Kind,
}

impl Inhibitor {
    #[must_use]
    pub fn new() -> Self {
        Self
    }

    pub async fn connect(&self) -> Result<(), Refused> {
        Err(Refused::Unsupported { why: WHY_NOT.to_owned() })
    }

    pub async fn take(&self, kinds: &[Kind]) -> Vec<(Kind, Result<Held, Refused>)> {
        kinds.iter().map(|kind| (*kind, Err(Refused::Unsupported { why: WHY_NOT.to_owned() }))).collect()
    }

    pub async fn read_back<'a>(
        &self,
        _held: impl IntoIterator<Item = &'a Held>,
    ) -> Result<Standing, Refused> {
        Err(Refused::Unsupported { why: WHY_NOT.to_owned() })
    }

    pub async fn next(&self) -> Notice {
        std::future::pending().await
    }
}

impl Held {
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    #[must_use]
    pub fn is_own(&self) -> bool {
        true
    }
}
