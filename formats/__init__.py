"""Other people's transcripts, in and out.

    from sealog.formats import export_session, import_file

    with sealog.open("sessions") as store:
        report = import_file(store, "chat.jsonl")          # again later: only what is new
        session = store.open_session(report.session_id)
        export_session(session, "chat.html", format="html")

`import_file` tells the format from the content. Every record is kept, and exporting in the same format gives
back equal JSON, record for record. docs/formats.md has the formats and how to add one.
"""

from __future__ import annotations

from .errors import FileNameError, NotAnImportError, NotExportableError, UnknownFormatError
from .exporting import ExportReport, export_session
from .importing import Conflict, ImportReport, Problem, import_file
from .registry import READERS, WRITERS, Reader, Writer

__all__ = [
    "READERS",
    "WRITERS",
    "Conflict",
    "ExportReport",
    "FileNameError",
    "ImportReport",
    "NotAnImportError",
    "NotExportableError",
    "Problem",
    "Reader",
    "UnknownFormatError",
    "Writer",
    "export_session",
    "import_file",
]
