//! Files in which agents keep their own live state. An input is a file's name, a newline, and its content.

use watchkeeper_core::AgentKind;

/// Any state file of any agent.
pub fn any(input: &[u8]) {
    let (name, content) = crate::named(input);
    let name = String::from_utf8_lossy(name);
    let transcript = String::from_utf8_lossy(content);
    for adapter in AgentKind::ALL.into_iter().filter_map(watchkeeper_agents::adapter) {
        // The folder of such files is told from a path that others write.
        for folder in adapter.state_dirs(&transcript) {
            assert!(folder.len() <= transcript.len() + "sessions".len());
        }
        for content in [Some(content), None] {
            if let Some(said) = adapter.state_file(&name, content) {
                assert!(said.pid > 0, "a process that cannot be");
            }
        }
    }
}
