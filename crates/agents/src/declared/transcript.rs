//! The transcript of a declared agent. Which lines are parsed is decided by the texts that its rules ask for.

use std::sync::Arc;

use memchr::memmem;
use serde_json::{Value, json};

use super::rules::Section;
use crate::{
    adapter::{Parsed, TranscriptReader},
    json::parse_object,
};

#[derive(Debug)]
pub(super) struct Reader {
    session: String,
    section: Arc<Section>,
    /// For each rule the texts that must stand in a line, as JSON writes them.
    marks: Vec<Vec<String>>,
}

impl Reader {
    pub(super) fn new(session: &str, section: Arc<Section>) -> Self {
        let texts = |value: &Value| value.as_str().map(|text| Value::from(text).to_string());
        let marks = section
            .rules
            .iter()
            .map(|rule| rule.when.iter().filter_map(|(_, wanted)| texts(wanted)).collect())
            .collect();
        Self { session: session.to_owned(), section, marks }
    }
}

impl TranscriptReader for Reader {
    fn wants(&self, line: &[u8]) -> bool {
        let has = |mark: &String| memmem::find(line, mark.as_bytes()).is_some();
        self.marks.iter().any(|marks| marks.iter().all(has))
    }

    fn line(&mut self, line: &[u8], out: &mut Parsed) {
        let Ok(record) = parse_object(line) else { return };
        let Some(rule) = self.section.rule(None, &record) else { return };
        let mut context = self.section.context(&record);
        context.session = Some(self.session.clone());
        self.section.apply(rule, "record", &record, &context, out);
    }

    fn save(&self) -> Value {
        json!({})
    }
}
