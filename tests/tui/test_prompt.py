"""Where the person writes."""

from textual import events
from textual.app import App, ComposeResult
from textual.widgets import TextArea

from localspec.tui.widgets.prompt import Prompt
from scripted import until


class PromptApp(App[None]):
    """Nothing but a prompt; what is sent is accepted unless told otherwise."""

    CSS = "Prompt { height: auto; max-height: 10; }"

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []
        self.asked_to_quit = 0

    def compose(self) -> ComposeResult:
        yield Prompt()

    @property
    def prompt(self) -> Prompt:
        return self.query_one(Prompt)

    def on_prompt_sent(self, event: Prompt.Sent) -> None:
        self.sent.append(event.text)
        self.prompt.accept()

    def on_prompt_quit_asked(self) -> None:
        self.asked_to_quit += 1


async def test_enter_sends_and_ctrl_j_makes_a_new_line() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "ctrl+j", "b", "shift+enter", "c", "enter")
        await until(pilot, lambda: app.sent)
        assert app.sent == ["a\nb\nc"]
        assert app.prompt.text == ""


async def test_nothing_is_not_sent() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("space", "enter")
        await pilot.pause(0.05)
        assert app.sent == []


async def test_an_enter_within_a_burst_of_keys_is_a_line_end() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        for key, character in (("a", "a"), ("enter", "\r"), ("enter", "\r"), ("b", "b")):
            app.prompt.post_message(events.Key(key, character))
        await until(pilot, lambda: app.prompt.text == "a\n\nb")
        await pilot.pause(0.05)
        assert app.sent == []


async def test_a_large_paste_goes_in_as_it_is_and_is_not_sent() -> None:
    app = PromptApp()
    text = "\n".join(f"line {number} [red] {'x' * 40}" for number in range(2000))
    async with app.run_test() as pilot:
        await pilot.press("a", "b", "left")
        app.prompt.post_message(events.Paste(text))
        await until(pilot, lambda: app.prompt.text == f"a{text}b")
        assert app.sent == []
        assert app.prompt.get_cursor_right_location()[0] == 1999


async def test_control_characters_of_a_paste_are_made_visible() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.post_message(events.Paste("a\r\n\x1b[31mb\x00\ud800"))
        await until(pilot, lambda: app.prompt.text == "a\n␛[31mb␀\ufffd")


async def test_a_paste_replaces_what_is_selected() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        app.prompt.text = "old"
        app.prompt.select_all()
        app.prompt.post_message(events.Paste("new"))
        await until(pilot, lambda: app.prompt.text == "new")


async def test_up_and_down_go_through_what_was_sent_from_the_first_and_last_line_only() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        for text in ("one", "two\nlines"):
            app.prompt.text = text
            await pilot.press("enter")
            await until(pilot, lambda text=text: text in app.sent)
        await pilot.press("x", "up")
        assert app.prompt.text == "two\nlines"
        assert app.prompt.cursor_at_end_of_text
        await pilot.press("up")
        assert app.prompt.text == "two\nlines"
        assert app.prompt.cursor_location[0] == 0
        await pilot.press("up")
        assert app.prompt.text == "one"
        await pilot.press("down", "down", "down")
        assert app.prompt.text == "x"


async def test_up_moves_within_a_wrapped_line_first() -> None:
    app = PromptApp()
    async with app.run_test(size=(20, 20)) as pilot:
        app.prompt.text = "sent"
        await pilot.press("enter")
        await until(pilot, lambda: app.sent)
        app.prompt.text = "word " * 8
        await pilot.pause()
        app.prompt.move_cursor(app.prompt.document.end)
        await pilot.press("up")
        assert app.prompt.text != "sent"


async def test_text_that_was_not_taken_comes_back_before_what_was_written_since() -> None:
    app = PromptApp()
    async with app.run_test():
        app.prompt.give_back("first")
        assert app.prompt.text == "first"
        app.prompt.text = "second"
        app.prompt.give_back("first")
        assert app.prompt.text == "first\nsecond"


async def test_ctrl_d_deletes_and_asks_to_quit_only_when_there_is_nothing() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        await pilot.press("a", "left", "ctrl+d")
        assert (app.prompt.text, app.asked_to_quit) == ("", 0)
        await pilot.press("ctrl+d")
        assert app.asked_to_quit == 1


async def test_it_grows_with_the_text_up_to_eight_lines() -> None:
    app = PromptApp()
    async with app.run_test() as pilot:
        heights = []
        for lines in (1, 3, 8, 30):
            app.prompt.text = "\n".join(["x"] * lines)
            await pilot.pause()
            heights.append(app.prompt.content_size.height)
        assert heights == [1, 3, 8, 8]
        assert isinstance(app.prompt, TextArea)
