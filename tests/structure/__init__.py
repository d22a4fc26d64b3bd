"""The shape of the project: import arrows, sizes, free imports, what the repository may hold."""
