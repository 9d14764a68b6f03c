"""Pages for people: everything is on them, and nothing from the session is more than text."""

from __future__ import annotations

import base64
import html.parser
import os
import re
from typing import TYPE_CHECKING, Any

import pytest

import sealog

if TYPE_CHECKING:
    from collections.abc import Callable

    Give = Callable[..., bytes]

HOSTILE = [
    "<script>alert(1)</script>",
    "</pre></article></main></body></html><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "<!-- --!> <![CDATA[ ]]> </style><style>*{display:none}</style></title>",
    "&lt;script&gt; &#60; &amp",
    "javascript:alert(1)",
    "a\0b\x1b[31mc\x7f\x85d",
    "left\u202eright\u2066\u200f",
    "line\u2028line\u2029\ufeff\U000e0041",
    "```\n# heading\n````\n~~~",
    "`" * 40 + "\n" + "`" * 39,
    "# a\n- b\n> c\n[x](javascript:alert(1)) ![y](http://example.com/z)",
    "\r\n\r tab\t",
    "\U0001d518 ✓ 🎉",
    "",
    "x" * 100_000,
]


class Page(html.parser.HTMLParser):
    """What a browser would make of a page."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(content.decode())
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img"}:
            self._open.append(tag)
        if tag == "pre":
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["pre"]:
            self.texts[-1] += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


@pytest.fixture
def session(store: sealog.Store) -> sealog.Session:
    return store.create_session(
        "own", created_at="<b>now</b>", labels={"title": HOSTILE[1], "<i>": HOSTILE[2]}
    )


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_is_text_on_the_page(session: sealog.Session, give: Give, text: str) -> None:
    session.append("user-message", text, {"data": text, "key<b>": [text]})
    session.append(f'x"><script>{text[:50]}', text)
    session.attach(
        b"<script>alert(1)</script>", file_name=text[:50].strip() or "x", media_type="text/html", text=text
    )
    page = Page(give("own", "html"))
    allowed = {
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "dl",
        "dt",
        "dd",
        "main",
        "article",
        "h2",
        "a",
        "time",
        "pre",
        "p",
        "details",
        "summary",
    }
    assert {tag for tag, _ in page.tags} <= allowed
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    links = [attributes["href"] or "" for tag, attributes in page.tags if tag == "a"]
    assert all(link.startswith(("#e", "data:application/octet-stream;base64,")) for link in links)
    if text and not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2000-\u20ff\ufeff\U000e0041]", text):
        assert text in page.texts
    assert not re.search(
        "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u2028\u2029]", give("own", "html").decode()
    )


def test_the_policy_of_the_page_forbids_scripts_and_requests(session: sealog.Session, give: Give) -> None:
    session.append("user-message", "hi")
    content = give("own", "html")
    page = Page(content)
    policies = [
        attributes["content"]
        for _, attributes in page.tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policies[0] is not None
    assert policies[0].startswith("default-src 'none'; img-src data:; style-src 'sha256-")
    assert b"<script" not in content
    assert not re.search(rb"(src|href)=\"(?!#|data:)", content)
    assert not re.search(rb"url\(|@import", content)


def test_attachments_are_in_the_page(session: sealog.Session, give: Give) -> None:
    files = {
        "image/png": b"\x89PNG" * 100_000,
        "image/svg+xml": b"<svg/>",
        "application/pdf": b"%PDF",
        "text/html": b"<b>",
    }
    for media_type, content in files.items():
        session.attach(content, file_name='a"b', media_type=media_type)
    page = Page(give("own", "html"))
    sources = [attributes.get("src") or attributes.get("href") or "" for _, attributes in page.tags]
    found = [source for source in sources if source.startswith("data:")]
    assert [source.partition(";")[0] for source in found] == [
        "data:image/png",
        "data:image/svg+xml",
        "data:application/octet-stream",
        "data:application/octet-stream",
    ]
    assert [base64.b64decode(source.partition(",")[2]) for source in found] == list(files.values())
    assert [tag for tag, attributes in page.tags if "src" in attributes or "download" in attributes] == [
        "img",
        "img",
        "a",
        "a",
    ]


def test_a_file_that_is_gone_or_changed_is_named_and_the_rest_shown(
    session: sealog.Session, give: Give
) -> None:
    for name in ("gone.png", "changed.png"):
        session.attach(b"\x89PNG", file_name=name)
    session.append("user-message", "after")
    (first, second) = (session.read_attachment(position).path for position in (0, 1))
    os.unlink(first)
    with open(second, "r+b") as file:
        file.write(b"x")
    for name in ("html", "markdown"):
        content = give("own", name).decode()
        assert content.count("not shown") == 2
        assert "after" in content


def test_markdown_shows_every_text_as_it_is(session: sealog.Session, give: Give) -> None:
    for text in HOSTILE:
        session.append("user-message", text)
    lines = iter(give("own", "markdown").decode().split("\n"))
    shown: list[str] = []
    for line in lines:
        assert "<" not in line.replace("\\<", "")
        if line.startswith("```"):
            fence = line.removesuffix("text")
            assert set(fence) == {"`"}
            block: list[str] = []
            while (inner := next(lines)) != fence:
                block.append(inner)
            shown.append("\n".join(block))
    expected = [text.replace("\r\n", "\n") for text in HOSTILE if text]
    hidden = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e\u2066\u200f\u2028\u2029\ufeff\U000e0041]")
    assert shown == [hidden.sub(lambda match: escape(match[0]), text) for text in expected]


def escape(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 65536 else f"\\U{code:08x}"


def test_markdown_headings_hold_no_markup(session: sealog.Session, give: Give) -> None:
    session.append("x`*[a](b)<i>\n# y", "t")
    session.attach(b"x", file_name="<a>\n```\n# b [c](d)", media_type="a/b")
    content = give("own", "markdown").decode()
    assert "\n# y" not in content
    assert "\n# b" not in content
    assert re.search(r"(?<!\\)[<\[]", content.replace("```text\nt\n```", "")) is None


def test_a_sealed_session_says_so(session: sealog.Session, give: Give) -> None:
    session.append("user-message", "hi")
    session.seal()
    assert b"- sealed: yes" in give("own", "markdown")
    assert b"<dt>sealed</dt><dd>yes</dd>" in give("own", "html")


def test_an_unfinished_line_is_shown_until_it_is_finished(take: Callable[..., Any], give: Give) -> None:
    line = b'{"role":"user","text":"whole"}\n'
    take(line + b'{"role":"us', format="jsonl")
    assert b"incomplete" in give(format="markdown")
    take(line + line, format="jsonl")
    assert b"incomplete" not in give(format="markdown")


def test_times_beyond_the_calendar_are_shown_as_numbers(session: sealog.Session, give: Give) -> None:
    session.append_many(
        [sealog.Event("user-message", "a", at=-(2**63)), sealog.Event("user-message", "b", at=1_500_000_000)]
    )
    content = give("own", "markdown").decode()
    assert "1677-09-21T00:12:43" in content
    assert "1970-01-01T00:00:01.500Z" in content
