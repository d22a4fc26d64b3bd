"""Pages of the app, one file each."""
