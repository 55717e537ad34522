"""The chat while its model is fetched and loaded, and when there is none in the end."""

from localspec.engine.errors import UserError
from localspec.tui.app import ChatApp
from localspec.tui.widgets.prompt import Prompt
from localspec.tui.widgets.turn import Turn
from scripted import ScriptedBackend, SlowLoad, chat, failing_app, finished, seen, send, status_says, until


async def test_what_is_sent_while_the_model_loads_is_answered_afterwards() -> None:
    load = SlowLoad(ScriptedBackend(["Here."]))
    app = ChatApp(load)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "loading the model 25 %" in seen(app))
        await pilot.press("h", "i", "enter")
        await until(pilot, lambda: status_says(app, "your message waits"))
        assert "hi" in seen(app)
        await pilot.press("m", "o", "r", "e", "enter")
        await until(pilot, lambda: status_says(app, "One message is waiting"))
        assert chat(app).query_one(Prompt).text == "more"
        load.go.set()
        await finished(pilot, 1)
        assert "Here." in seen(app)
    app.worker.join()


async def test_a_message_that_waits_for_the_model_can_be_taken_back() -> None:
    backend = ScriptedBackend(["Here."])
    load = SlowLoad(backend)
    app = ChatApp(load)
    async with app.run_test() as pilot:
        await send(pilot, "too early")
        await until(pilot, lambda: status_says(app, "esc stop"))
        await pilot.press("escape")
        await until(pilot, lambda: chat(app).query_one(Prompt).text == "too early")
        assert not chat(app).query(Turn)
        load.go.set()
        await until(pilot, lambda: "ready" in seen(app))
        await pilot.press("enter")
        await finished(pilot, 1)
        assert backend.words() == ["too early"]
    app.worker.join()


async def test_a_download_shows_how_far_it_is() -> None:
    load = SlowLoad(ScriptedBackend())

    def fetch_only(report: object) -> ScriptedBackend:
        report.fetching("downloading", 45_000_000, 90_000_000)  # type: ignore[attr-defined]
        load.go.wait()
        return ScriptedBackend()

    app = ChatApp(fetch_only)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "downloading the starter model 45 / 90 MB" in seen(app))
        load.go.set()
    app.worker.join()


async def test_what_was_reduced_to_fit_into_the_memory_is_said() -> None:
    backend = ScriptedBackend()
    backend.note = "The context has 4096 tokens [not 8192]."
    app = ChatApp(lambda _report: backend)
    async with app.run_test() as pilot:
        await until(pilot, lambda: "big-model is ready. The context has 4096 tokens [not 8192]." in seen(app))
    app.worker.join()


async def test_a_model_that_cannot_be_loaded_is_explained_and_one_can_leave() -> None:
    app = failing_app(UserError("There is no file [x].gguf; give the path of another."))
    async with app.run_test() as pilot:
        await until(pilot, lambda: "There is no file [x].gguf; give the path of another." in seen(app))
        await send(pilot, "hello?")
        await until(pilot, lambda: status_says(app, "There is no model to ask"))
        assert chat(app).query_one(Prompt).text == "hello?"
        await pilot.press("ctrl+q")
    assert app.return_code == 0
    app.worker.join()


async def test_a_message_that_waits_for_a_model_that_never_comes_is_not_lost() -> None:
    load = SlowLoad(UserError("The file is broken; download it again."))
    app = ChatApp(load)
    async with app.run_test() as pilot:
        await send(pilot, "precious words")
        await until(pilot, lambda: status_says(app, "your message waits"))
        load.go.set()
        await until(pilot, lambda: chat(app).query_one(Prompt).text == "precious words")
        await pilot.pause(0.2)
        assert seen(app).count("The file is broken") == 1
        assert not chat(app).query(Turn)
    app.worker.join()


async def test_leaving_while_the_model_loads_gives_up_loading() -> None:
    load = SlowLoad(ScriptedBackend())
    app = ChatApp(load)
    async with app.run_test() as pilot:
        await until(pilot, load.begun.is_set)
        await pilot.press("ctrl+d")
    assert app.worker.join()
    assert load.given_up.is_set()
