//! What every command has at hand: its instance, its output, the way to the daemon.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Value;
use watchkeeper_api::{Client, ClientError, ClientOptions, Method};

use crate::{args::Global, complaint::Complaint, instance::Instance, output::Terminal};

/// How a command ends: an exit code, or what to complain about.
pub(crate) type Outcome = Result<u8, Complaint>;

/// Version of every JSON shape that names no other.
const JSON_VERSION: u32 = 1;

#[derive(Debug)]
pub(crate) struct App {
    pub(crate) instance: Instance,
    pub(crate) json: bool,
    pub(crate) terminal: Terminal,
}

impl App {
    pub(crate) fn new(global: &Global) -> Result<Self, Complaint> {
        Ok(Self { instance: Instance::of(global)?, json: global.json, terminal: Terminal::stdout() })
    }

    /// Writes to standard output at once.
    pub(crate) fn print(&self, text: &str) -> Result<(), Complaint> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(|error| Complaint::output(&error))
    }

    pub(crate) fn print_line(&self, line: &str) -> Result<(), Complaint> {
        self.print(&format!("{line}\n"))
    }

    /// Prints an object as one indented JSON document with its `version`.
    pub(crate) fn print_json(&self, answer: &impl Serialize) -> Result<(), Complaint> {
        let unwritable =
            |error: serde_json::Error| Complaint::new("cannot write the answer").caused_by(&error);
        let mut value = serde_json::to_value(answer).map_err(unwritable)?;
        if let Value::Object(fields) = &mut value {
            fields.entry("version").or_insert_with(|| JSON_VERSION.into());
        }
        let text = serde_json::to_string_pretty(&value).map_err(unwritable)?;
        self.print_line(&text)
    }

    /// JSON when asked for it, else what `text` makes.
    pub(crate) fn answer(
        &self,
        answer: &impl Serialize,
        text: impl FnOnce(&Self) -> String,
    ) -> Result<(), Complaint> {
        if self.json { self.print_json(answer) } else { self.print(&text(self)) }
    }

    /// A connection to this instance's daemon.
    pub(crate) fn dial(&self) -> Result<Client, ClientError> {
        let name = concat!("watchkeeper ", env!("CARGO_PKG_VERSION"));
        Client::connect(&self.instance.api(), &ClientOptions::new(name))
    }

    /// As [`App::dial`]; `what` is what cannot be done without.
    pub(crate) fn connect(&self, what: &str) -> Result<Client, Complaint> {
        self.dial().map_err(|error| Complaint::client(what, &error))
    }

    /// One call on a connection of its own.
    pub(crate) fn ask<M: Method>(&self, what: &str, params: &M::Params) -> Result<M::Output, Complaint> {
        self.connect(what)?.call::<M>(params).map_err(|error| Complaint::client(what, &error))
    }
}
