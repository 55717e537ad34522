"""Text as it may be shown: what a person or a model writes can hold anything, and must not move the cursor."""

import re

_SURROGATES = re.compile("[\ud800-\udfff]")
_LINE_ENDS = re.compile("\r\n|[\r\x85\u2028\u2029]")
_REPLACEMENT = "\ufffd"
_PICTURES = {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\t\n"}
_CONTROLS = _PICTURES | {0x7F: "\u2421"} | dict.fromkeys(range(0x80, 0xA0), _REPLACEMENT)


def literal(text: str) -> str:
    """`text` with control characters made visible, every line end a newline, and lone surrogates replaced."""
    return _SURROGATES.sub(_REPLACEMENT, _LINE_ENDS.sub("\n", text).translate(_CONTROLS))
