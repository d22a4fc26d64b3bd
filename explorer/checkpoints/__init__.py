"""Formats on disk, read strictly into our modules; fetching and converting the default target."""
