"""What happens to Codex's sessions when its shared app-server runs their turns and the terminal interface is only a client."""

from __future__ import annotations

from plays import begin_long_tool, leave, open_idle
from scene import Scene
from session_plays import one_turn
from signs import BUSY_3, EXIT, FIRST_PROMPT, TOOL_STARTED, TURN_STOPPED, hook

# The server unloads a thread about a minute after its last client has left and its turn has ended.
UNLOADED_SECONDS_MAX = 120


def unloaded(scene: Scene) -> None:
    scene.expect("ended", hook("SessionEnd"), "the server unloaded the thread", within=UNLOADED_SECONDS_MAX)


def exit_idle(scene: Scene) -> None:
    open_idle(scene)
    one_turn(scene)
    scene.send("/quit")
    scene.expect("idle", EXIT, "the person left; the thread stays loaded")
    unloaded(scene)


def begin_tool(scene: Scene) -> None:
    open_idle(scene)
    scene.send(f"PLAY bash:{BUSY_3} ;; bash:{BUSY_3} ;; slow:3")
    scene.expect("working", FIRST_PROMPT, "a prompt was given", brief=True)
    scene.expect("working", TOOL_STARTED, "a tool was started", brief=True)


def goes_on(scene: Scene, how: str) -> None:
    """The client is gone; the turn is not the client's."""
    scene.expect("working", EXIT, how)
    scene.expect("idle", TURN_STOPPED, "the turn stopped without a client")
    scene.agent.clean_up()
    scene.expect("ended", hook("SessionEnd"), "the shared server stopped")


def kill_client(scene: Scene) -> None:
    begin_tool(scene)
    scene.kill_agent()
    goes_on(scene, "the client was killed")


def kill_wrapper(scene: Scene) -> None:
    begin_tool(scene)
    scene.kill_wrapper()
    goes_on(scene, "the client's wrapper was killed, and its terminal with it")


def close_terminal(scene: Scene) -> None:
    begin_tool(scene)
    scene.close_terminal()
    goes_on(scene, "the terminal was closed")


def terminate_client(scene: Scene) -> None:
    begin_tool(scene)
    scene.terminate()
    goes_on(scene, "the client was told to end")


def kill_server(scene: Scene) -> None:
    """No hook ever tells: the clients hang, and the tool dies with the server."""
    open_idle(scene)
    begin_long_tool(scene, scene.send)
    scene.kill_server()
    scene.expect("ended", lambda e: e.kind == "exit" and e.name == "server", "the server was killed")
    scene.tool_survives(False)


def clear(scene: Scene) -> None:
    """The old thread stays loaded, and is unloaded by itself after a minute."""
    open_idle(scene)
    one_turn(scene)
    old = scene.session_ids()[0]
    scene.send("/clear")
    scene.send("PLAY slow:3")
    scene.expect_new_session(hook("SessionStart"))
    scene.expect("idle", hook("SessionStart"), "another thread was begun beside it", session=0, brief=True)
    scene.expect("working", FIRST_PROMPT, "a prompt was given in the next thread")
    scene.expect("idle", TURN_STOPPED, "the turn stopped")
    over = lambda e: hook("SessionEnd")(e) and e.data.get("session_id") == old  # noqa: E731
    scene.expect("ended", over, "the server unloaded the old thread", session=0, within=UNLOADED_SECONDS_MAX)
    leave(scene)


def resume(scene: Scene) -> None:
    """The next client finds the thread still loaded."""
    open_idle(scene)
    one_turn(scene)
    scene.send("/quit")
    scene.expect("idle", EXIT, "the person left; the thread stays loaded")
    scene.open_terminal(resume=True)
    one_turn(scene)
    leave(scene)
