use std::{fs, process::Command};

use watchkeeper_os::process::ancestry::{ChainEnd, chain_of};

use crate::child::Cat;

#[test]
fn a_chain_leads_from_a_grandchild_through_its_shell_to_us() {
    let (shell, cat) = Cat::start_below_shell();
    let chain = chain_of(cat);
    let pids: Vec<u32> = chain.rows.iter().map(|row| row.pid).collect();
    assert_eq!(pids.get(..3), Some([cat, shell.pid(), std::process::id()].as_slice()), "{chain:?}");
    assert_eq!(chain.end, ChainEnd::Top);
    let shell_row = &chain.rows[1];
    assert_eq!(shell_row.comm, "sh");
    assert_eq!(shell_row.argv[..2], ["sh", "-c"]);
    assert_eq!(shell_row.start, shell.process().start);
    assert_eq!(fs::canonicalize(&chain.rows[2].exe).unwrap(), std::env::current_exe().unwrap());
    assert!(chain.rows.windows(2).all(|pair| pair[0].ppid == pair[1].pid && pair[0].start >= pair[1].start));
}

#[test]
fn a_replaced_executable_keeps_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("agent (deleted)");
    // By a process of its own: a child that another test forks at this moment would keep our copy open for writing, and what
    // is open for writing cannot be run.
    assert!(Command::new("cp").arg("/bin/cat").arg(&program).status().unwrap().success());
    let cat = Cat::start_at(&program);
    let exe = || chain_of(cat.pid()).rows[0].exe.clone();
    // A file whose own name ends like the kernel's mark loses that ending; a file without it never does.
    assert_eq!(exe(), folder.path().join("agent").display().to_string());
    fs::remove_file(&program).unwrap();
    assert_eq!(exe(), program.display().to_string());
}

#[test]
fn an_exited_process_has_no_chain() {
    let mut cat = Cat::start();
    let pid = cat.pid();
    cat.end_of_input();
    cat.reap();
    let chain = chain_of(pid);
    assert_eq!((chain.rows.len(), chain.end), (0, ChainEnd::Gone));
}
