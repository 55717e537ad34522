"""How an answer ended, in words."""

from localspec.chat.thread import Entry
from localspec.engine.step import Finish

_WORDS = {
    Finish.STOP.value: "",
    Finish.LENGTH.value: "cut off here, where the answer was as long as asked for",
    Finish.CONTEXT.value: "cut off here, where the context was full; ctrl+n begins a new chat",
    Finish.INTERRUPTED.value: "stopped",
}


def ending(entry: Entry) -> str:
    """What stands below a saved answer; nothing where the model ended it."""
    if entry.figures and entry.figures.get("edited"):
        return "edited"
    return _WORDS.get(entry.finish or "", "broken off")
