"""One HTML page that needs nothing else: attachments are in it, and there is no script.

Everything from the session is escaped text; the page's own policy forbids scripts, frames and every request.
Images are shown, other files can be saved. The data of an event opens on demand.
"""

from __future__ import annotations

import base64
import hashlib
import html
from typing import TYPE_CHECKING, Final

from .pages import data_text, heading, shown_events, time_text, visible
from .target import Written

if TYPE_CHECKING:
    from ..actors.readable import ReadableSession
    from ..storage.attachments import Attachment
    from .pages import Shown
    from .target import Target, Writable

__all__ = ["NAME", "SUFFIX", "write"]

NAME: Final = "html"
SUFFIX: Final = ".html"

_IMAGES: Final = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"})
"""Types that are shown; in an image element none of them runs a script or loads anything."""
_BASE64_CHUNK: Final = 3 * 64 * 1024

_STYLE: Final = """
:root { color-scheme: light dark; --line: #8886; --soft: #8882; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; overflow-wrap: anywhere; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; }
dd { margin: 0; overflow-wrap: anywhere; }
article { border-left: 4px solid var(--line); padding: 0 0 0 .8rem; margin: 1.2rem 0; }
article.user-message { border-color: #27c; }
article.assistant-message { border-color: #292; }
article.tool-call, article.tool-result { border-color: #a70; }
article.tool-error, article.system-error { border-color: #c22; }
h2 { font-size: .85rem; margin: 0; display: flex; gap: .8rem; font-weight: 600; }
h2 time, h2 a { font-weight: 400; opacity: .7; color: inherit; text-decoration: none; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; unicode-bidi: isolate; }
article.user-message > pre, article.assistant-message > pre { font-family: inherit; }
details > pre { background: var(--soft); padding: .5rem; max-height: 30rem; overflow: auto; }
summary { cursor: pointer; opacity: .7; font-size: .85rem; }
img { max-width: 100%; max-height: 40rem; border: 1px solid var(--line); }
"""
_STYLED_KINDS: Final = frozenset(
    {"user-message", "assistant-message", "tool-call", "tool-result", "tool-error", "system-error"}
)


def write(session: ReadableSession, target: Target) -> Written:
    """Write the whole session.

    Raises:
        NotExportableError: a record is not whole.
        OSError: the target cannot be written.
    """
    out, written = target.file(), Written()
    out.write(_head(session).encode())
    for shown in shown_events(session):
        _write_event(out, shown)
        written.records += 1
    out.write(b"</main>\n</body>\n</html>\n")
    return written


def _head(session: ReadableSession) -> str:
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; form-action 'none'; base-uri 'none'"
    )
    title = _text(session.session_id)
    facts = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>\n" for name, value in heading(session))
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="referrer" content="no-referrer">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{title}</h1>\n<dl>\n{facts}</dl>\n<main>\n"
    )


def _write_event(out: Writable, shown: Shown) -> None:
    event, position = shown.event, shown.position
    style = f' class="{event.kind}"' if event.kind in _STYLED_KINDS else ""
    time = time_text(event.at)
    out.write(
        f'<article id="e{position}"{style}>\n<h2><a href="#e{position}">{position}</a> {_text(event.kind)}'
        f' <time datetime="{time}">{time}</time></h2>\n'.encode()
    )
    if shown.attachment is not None:
        _write_attachment(out, shown.attachment)
    elif shown.problem is not None:
        out.write(f"<p><em>{_text(shown.problem)}</em></p>\n".encode())
    if event.text:
        out.write(f"<pre>{_text(event.text)}</pre>\n".encode())
    data = data_text(event)
    if data:
        out.write(f"<details><summary>data</summary><pre>{_text(data)}</pre></details>\n".encode())
    out.write(b"</article>\n")


def _write_attachment(out: Writable, attachment: Attachment) -> None:
    """Write a file into the page, a piece at a time; what is no image can be saved, but not opened."""
    name = _text(attachment.file_name)
    facts = f"{name} ({_text(attachment.media_type)}, {attachment.size_bytes:,} bytes)"
    is_image = attachment.media_type in _IMAGES
    media_type = attachment.media_type if is_image else "application/octet-stream"
    start, end = ('<img alt="', f'" title="{facts}">') if is_image else ('<a download="', f'">{facts}</a>')
    out.write(f'<p>{start}{name}" {"src" if is_image else "href"}="data:{media_type};base64,'.encode())
    with attachment.open() as file:
        while piece := file.read(_BASE64_CHUNK):
            out.write(base64.b64encode(piece))
    out.write(f"{end}</p>\n".encode())


def _text(text: str) -> str:
    """Return text that is nothing but text, in elements and in quoted attributes."""
    return html.escape(visible(text), quote=True)
