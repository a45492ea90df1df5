//! logind's refusals in words, with what to do about them.

use zbus::fdo;

use super::{Kind, Refused};
use crate::power::system_bus::describe;

/// Where a local administrator's polkit rules live.
const RULES_FILE: &str = "/etc/polkit-1/rules.d/50-watchkeeper.rules";

/// A refusal of `Inhibit`.
pub(super) fn refused(kind: Kind, error: &zbus::Error) -> Refused {
    let action = action(kind);
    if is_denied(error) {
        return Refused::Denied {
            why: format!(
                "logind denies the {kind} lock to this user (polkit action {action}): {}",
                describe(error)
            ),
            fix: fix(action),
        };
    }
    match unreadable(error) {
        Refused::Unsupported { why } => Refused::Unsupported { why },
        Refused::Denied { why, .. } | Refused::Failed { why } => {
            Refused::Failed { why: format!("taking the {kind} lock: {why}") }
        }
    }
}

/// An error of any other question.
pub(super) fn unreadable(error: &zbus::Error) -> Refused {
    let no_service = matches!(error, zbus::Error::FDO(e)
        if matches!(**e, fdo::Error::ServiceUnknown(_) | fdo::Error::NameHasNoOwner(_)));
    let why = describe(error);
    if no_service {
        Refused::Unsupported { why: format!("no logind on the system bus: {why}") }
    } else {
        Refused::Failed { why: format!("logind: {why}") }
    }
}

/// Actions of `/usr/share/polkit-1/actions/org.freedesktop.login1.policy` (systemd 252 and 257).
fn action(kind: Kind) -> &'static str {
    match kind {
        Kind::Idle => "org.freedesktop.login1.inhibit-block-idle",
        Kind::LidSwitch => "org.freedesktop.login1.inhibit-handle-lid-switch",
        Kind::Sleep => "org.freedesktop.login1.inhibit-block-sleep",
    }
}

/// 252 answers `AccessDenied`; 257 says that a dialogue would be needed, which a daemon cannot have.
fn is_denied(error: &zbus::Error) -> bool {
    matches!(error, zbus::Error::FDO(e) if matches!(
        **e,
        fdo::Error::AccessDenied(_) | fdo::Error::InteractiveAuthorizationRequired(_) | fdo::Error::AuthFailed(_)
    ))
}

fn fix(action: &str) -> String {
    let user = user_name().unwrap_or_else(|| "YOUR-USER".to_owned());
    format!(
        "log in at the machine's own screen, or let an administrator write this rule to {RULES_FILE}: \
         polkit.addRule(function(action, subject) {{ if (action.id == \"{action}\" && subject.user == \"{user}\") \
         return polkit.Result.YES; }});"
    )
}

/// The name of our user in `/etc/passwd`; users of other sources stay unnamed. A name with characters beyond the
/// portable ones is not put into a rule.
fn user_name() -> Option<String> {
    let uid = rustix::process::geteuid().as_raw().to_string();
    let passwd = std::fs::read_to_string("/etc/passwd").ok()?;
    let name = passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)? == uid).then_some(name)
    })?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.chars().all(plain).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: fdo::Error, kind: Kind, expected: &str) {
        let got = refused(kind, &error.into());
        let shape = match &got {
            Refused::Denied { .. } => "denied",
            Refused::Unsupported { .. } => "unsupported",
            Refused::Failed { .. } => "failed",
        };
        assert_eq!(shape, expected, "{got:?}");
        assert_eq!(got.fix().is_some_and(|fix| fix.contains(action(kind))), expected == "denied");
    }

    #[test]
    fn errors_become_refusals() {
        check(fdo::Error::AccessDenied("Permission denied".to_owned()), Kind::LidSwitch, "denied");
        check(fdo::Error::InteractiveAuthorizationRequired("x".to_owned()), Kind::Sleep, "denied");
        check(fdo::Error::ServiceUnknown("x".to_owned()), Kind::Idle, "unsupported");
        check(fdo::Error::LimitsExceeded("x".to_owned()), Kind::Idle, "failed");
        check(fdo::Error::NoReply("x".to_owned()), Kind::Idle, "failed");
    }

    #[test]
    fn a_timeout_says_how_long_it_waited() {
        let error = zbus::Error::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
        assert_eq!(
            refused(Kind::Idle, &error),
            Refused::Failed { why: "taking the idle lock: logind: no answer within 3 s".to_owned() }
        );
    }
}
