"""Other people's transcripts, in and out.

    from sealog.formats import export_session, import_file

    with sealog.open("sessions") as store:
        report = import_file(store, "chat.jsonl")          # again later: only what is new
        session = store.open_session(report.session_id)
        export_session(session, "chat.html", format="html")

`import_file` tells the format from the content. Every record is kept, and exporting in the same format gives
back equal JSON, record for record. Folders of sessions of older programs come with `import_directory` and go
with `export_directory`. docs/formats.md has the formats and how to add one.
"""

from __future__ import annotations

from .archives import Archive
from .errors import FileNameError, NotAnImportError, NotExportableError, UnknownFormatError
from .exporting import export_directory, export_session
from .importing import import_directory, import_file
from .registry import ARCHIVES, READERS, WRITERS, Reader, Writer
from .reports import Conflict, ExportReport, ImportReport, Problem

__all__ = [
    "ARCHIVES",
    "READERS",
    "WRITERS",
    "Archive",
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
    "export_directory",
    "export_session",
    "import_directory",
    "import_file",
]
