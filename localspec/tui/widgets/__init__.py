"""The widgets of the app, a file each."""
