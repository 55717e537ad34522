"""Drafters: whatever proposes tokens. A new drafter is one new file here."""
