"""Bytes on disk: events, frames, logs, attachments, recovery. Knows no actor."""
