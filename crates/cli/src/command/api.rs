//! `api schema`: the published interface.

use std::io::{self, Write};

use crate::{app::Outcome, complaint::Complaint, exit};

pub(super) fn schema() -> Outcome {
    let text = serde_json::to_string_pretty(&watchkeeper_api::schema::schema())
        .map_err(|error| Complaint::new("cannot write the schema").caused_by(&error))?;
    writeln!(io::stdout(), "{text}").map_err(|error| Complaint::output(&error))?;
    Ok(exit::SUCCESS)
}
