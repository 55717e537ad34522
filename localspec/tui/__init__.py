"""The chat: a Textual app around one engine."""
