"""Pictures as functions of the record: layout, colours, the step viewer, the charts. No torch, no gradio."""
