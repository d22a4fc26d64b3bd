"""The page: gradio lives only here and in app.py."""
