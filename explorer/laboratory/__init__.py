"""Experiments on speculative decoding, one file each; what they leave behind is an explorer.lab_records.LabRecord."""
