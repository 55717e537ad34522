"""Conversations: what a person and a model say to each other, and how it becomes token ids."""
