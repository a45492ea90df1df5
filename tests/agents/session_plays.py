"""What happens to a session beyond its turns: another takes its place, it is taken up again, its model fails, nothing comes."""

from __future__ import annotations

from evidence import Predicate
from plays import leave, open_idle
from scene import Scene
from signs import AGENT_GONE, FAILED, FIRST_PROMPT, TURN_STARTED, TURN_STOPPED, any_of, hook, notified

LONG_IDLE_SECONDS_MAX = 90


def one_turn(scene: Scene) -> None:
    scene.send("PLAY slow:2")
    scene.expect("working", TURN_STARTED, "a prompt was given")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")


# ---- another session takes its place


def clear_at_once(scene: Scene, old_over: Predicate = hook("SessionEnd"), new: Predicate = hook("SessionStart")) -> None:
    """`/clear`, where the agent reports both sessions at once."""
    open_idle(scene)
    one_turn(scene)
    scene.send("/clear")
    scene.expect("ended", old_over, "/clear replaced the session")
    scene.expect_new_session(new)
    scene.expect("idle", new, "the next session began")
    one_turn(scene)
    leave(scene)


def clear_with_next_prompt(scene: Scene) -> None:
    """`/clear`, where the old session is over at once and the new one is reported with its first prompt."""
    open_idle(scene)
    one_turn(scene)
    scene.send("/clear")
    scene.expect("ended", hook("SessionEnd"), "/clear ended the session")
    scene.send("PLAY slow:3")
    scene.expect_new_session(any_of(FIRST_PROMPT, hook("SessionStart")))
    scene.expect("working", FIRST_PROMPT, "a prompt was given in the next session")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


def clear_unreported(scene: Scene) -> None:
    """`/clear` of which nothing tells until the next prompt: its session takes the old one's place then."""
    open_idle(scene)
    one_turn(scene)
    scene.send("/clear")
    scene.send("PLAY slow:3")
    scene.expect_new_session(hook("SessionStart"))
    scene.expect("ended", hook("SessionStart"), "another session took its place", session=0, brief=True)
    scene.expect("working", FIRST_PROMPT, "a prompt was given in the next session")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    leave(scene)


def new_beside_old(scene: Scene) -> None:
    """OpenCode's `/new` ends nothing: the old session stays where it was, in the same process."""
    open_idle(scene)
    one_turn(scene)
    scene.send("/new")
    scene.terminal.wait_for(scene.agent.ready_screen)
    scene.send("PLAY slow:3")
    scene.expect_new_session(FIRST_PROMPT)
    scene.expect("working", FIRST_PROMPT, "a prompt was given in the next session")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    scene.expect("idle", TURN_STOPPED, "the old session is still there", session=0)
    leave(scene)


# ---- it is taken up again


def resume(scene: Scene) -> None:
    """The same conversation in another process. Until its first prompt only Claude and Gemini CLI tell of it."""
    open_idle(scene)
    one_turn(scene)
    leave(scene)
    scene.open_terminal(resume=True)
    if scene.agent.reports_start:
        scene.expect("idle", hook("SessionStart"), "the session was taken up again")
    one_turn(scene)
    leave(scene)


# ---- its model fails


def terminal_error(scene: Scene) -> None:
    open_idle(scene)
    scene.send("PLAY error:400")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("idle", any_of(FAILED, TURN_STOPPED), "the model refused the request")
    one_turn(scene)
    leave(scene)


def print_error(scene: Scene) -> None:
    scene.print_mode("PLAY error:400")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("ended", AGENT_GONE, "the model refused the request, and the agent ended")


# ---- nothing comes


def long_idle(scene: Scene) -> None:
    """Claude says after a minute that it is idle: that is news to nobody."""
    open_idle(scene)
    one_turn(scene)
    scene.expect("idle", notified("idle_prompt"), "nobody said anything for a minute", within=LONG_IDLE_SECONDS_MAX)
    leave(scene)
