"""What serde_json takes and refuses, case by case: (document, values or None for refused)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealog.formats._ksession_format import ROLES
from sealog.formats._ksession_json import JsonError, read_struct

EVENT = {"role": ROLES, "text": None}
OK = ["user-message", "t"]


def with_extra(value: bytes) -> bytes:
    return b'{"x":' + value + b',"role":"user-message","text":"t"}'


def with_text(text: bytes) -> bytes:
    return b'{"role":"user-message","text":"' + text + b'"}'


SHAPES = [
    (b'{"role":"user-message","text":"t"}', OK),
    (b'{"text":"t","role":"user-message"}', OK),
    (b' \t\r\n{ "role" \t: "user-message" ,\r\n"text" : "t" } \n', OK),
    (b'["user-message","t"]', OK),
    (b' [ "user-message" , "t" ] ', OK),
    (b'[{"user-message":null},"t"]', OK),
    (b'["user-message"]', None),
    (b'["user-message","t","x"]', None),
    (b'["user-message","t",]', None),
    (b'["user-message" "t"]', None),
    (b'["t","user-message"]', None),
    (b'[,"user-message","t"]', None),
    (b"[]", None),
    (b"{}", None),
    (b"", None),
    (b"   ", None),
    (b"null", None),
    (b'"user-message"', None),
    (b"1", None),
    (b'[["user-message","t"]]', None),
    (b'\xef\xbb\xbf{"role":"user-message","text":"t"}', None),
    (b'{"role":"user-message","text":"t"}\x00', None),
    (b'{"role":"user-message","text":"t"}x', None),
    (b'{"role":"user-message","text":"t"}{}', None),
    (b'{"role":"user-message","text":"t"},', None),
    (b'{"role":"user-message","text":"t"', None),
    (b'{"role":"user-message","text":"t",}', None),
    (b'{,"role":"user-message","text":"t"}', None),
    (b'{"role":"user-message",,"text":"t"}', None),
    (b'{"role":"user-message";"text":"t"}', None),
    (b'{"role":"user-message" "text":"t"}', None),
    (b'{"role" "user-message","text":"t"}', None),
    (b'{"role":"user-message","text":"t"]', None),
    (b"{'role':'user-message','text':'t'}", None),
    (b'{role:"user-message","text":"t"}', None),
    (b'{"role":"user-message",\x0b"text":"t"}', None),
    (b'{"role":"user-message",\x0c"text":"t"}', None),
    (b'{"role":"user-message",\xc2\xa0"text":"t"}', None),
    (b'{"role":"user-message","text":"t"/* */}', None),
]
FIELDS = [
    (b'{"\\u0072ole":"user-message","te\\u0078t":"t"}', OK),
    (b'{"Role":"user-message","text":"t"}', None),
    (b'{"role":"user-message"}', None),
    (b'{"text":"t"}', None),
    (b'{"role":"user-message","text":"t","text":"t"}', None),
    (b'{"role":"user-message","role":"user-message","text":"t"}', None),
    (b'{"role":"user-message","\\u0072ole":"user-message","text":"t"}', None),
    (b'{"role":"user-message","text":"t","x":1,"x":2}', OK),
    (b'{"0":1,"1":2,"role":"user-message","text":"t"}', OK),
    (b'{"":1,"role":"user-message","text":"t"}', OK),
    (b'{"\xff":1,"role":"user-message","text":"t"}', None),
    (b'{"\\ud800":1,"role":"user-message","text":"t"}', None),
    (b'{"a\nb":1,"role":"user-message","text":"t"}', None),
    (b'{1:1,"role":"user-message","text":"t"}', None),
    (b'{"role":"user-message","text":null}', None),
    (b'{"role":"user-message","text":1}', None),
    (b'{"role":"user-message","text":["t"]}', None),
    (b'{"role":"user-message","text":{}}', None),
]
ROLE_FORMS = [
    *[(b'{"role":"%b","text":"t"}' % role.encode(), [role, "t"]) for role in ROLES],
    *[(b'{"role":{"%b":null},"text":"t"}' % role.encode(), [role, "t"]) for role in ROLES],
    (b'{"role":"user\\u002dmessage","text":"t"}', OK),
    (b'{"role": { "user\\u002dmessage" : null } ,"text":"t"}', OK),
    (b'{"role":{"user-message":null,},"text":"t"}', None),
    (b'{"role":{"user-message":null,"x":null},"text":"t"}', None),
    (b'{"role":{"user-message":1},"text":"t"}', None),
    (b'{"role":{"user-message":[]},"text":"t"}', None),
    (b'{"role":{"user-message":nul},"text":"t"}', None),
    (b'{"role":{"user-message":nullx},"text":"t"}', None),
    (b'{"role":{"user-message"},"text":"t"}', None),
    (b'{"role":{"assistant":null},"text":"t"}', None),
    (b'{"role":{2:null},"text":"t"}', None),
    (b'{"role":{},"text":"t"}', None),
    (b'{"role":["user-message"],"text":"t"}', None),
    (b'{"role":2,"text":"t"}', None),
    (b'{"role":null,"text":"t"}', None),
    (b'{"role":"","text":"t"}', None),
    (b'{"role":"user_message","text":"t"}', None),
    (b'{"role":"User-Message","text":"t"}', None),
    (b'{"role":"UserMessage","text":"t"}', None),
    (b'{"role":"user-message ","text":"t"}', None),
    (b'{"role":"assistant-message","text":"t"}', None),
]
TEXTS = [
    (b"", ""),
    (b'\\" \\\\ \\/ \\b \\f \\n \\r \\t', '" \\ / \b \f \n \r \t'),
    (b"\\u0000\\u001f\\u007f\\u00e9\\uFFFF", "\0\x1f\x7f\xe9\uffff"),
    (b"\x7f \xc2\x80 \xe2\x80\xa8 \xef\xbb\xbf \xef\xbf\xbf", "\x7f \x80 \u2028 \ufeff \uffff"),
    (b"\xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf", "\U0001f600 \U0010ffff"),
    (b"\\ud83d\\ude00 \\uD83D\\uDE00 \\uDBFF\\uDFFF", "\U0001f600 \U0001f600 \U0010ffff"),
    (b"\\ud83d", None),
    (b"\\ude00", None),
    (b"\\ude00\\ud83d", None),
    (b"\\ud83d\\ud83d\\ude00", None),
    (b"\\ud83dx", None),
    (b"\\ud83d\\n", None),
    (b"\\ud83d\\u0041", None),
    (b"\\ud83d\xed\xb8\x80", None),
    (b"\xed\xa0\x80", None),
    (b"\xed\xa0\xbd\xed\xb8\x80", None),
    (b"\xff", None),
    (b"\xc0\x80", None),
    (b"\xc3", None),
    (b"\xf4\x90\x80\x80", None),
    (b"\xc3\\n\xa9", None),
    *[(bytes([control]), None) for control in range(0x20)],
    (b"\\a", None),
    (b"\\'", None),
    (b"\\0", None),
    (b"\\x41", None),
    (b"\\U0041", None),
    (b"\\u", None),
    (b"\\u004", None),
    (b"\\u004g", None),
    (b"\\u+041", None),
    (b"\\u 041", None),
    (b"\\u{41}", None),
    (b"\\", None),
    (b'"', None),
]
SKIPPED = [
    *[(b, True) for b in (b"null", b"true", b"false", b'""', b"[]", b"{}", b" [ ] ", b" { } ")],
    *[(b, True) for b in (b"0", b"-0", b"10", b"0.0", b"-0.5e+10", b"1E-5", b"1e999", b"-1e-999")],
    *[(b, True) for b in (b"9" * 5000, b"1." + b"1" * 5000, b"1e" + b"9" * 5000)],
    *[(b, False) for b in (b"01", b"-01", b"00", b"+1", b"-", b"--1", b".5", b"1.", b"1.e1", b"1e", b"1e+")],
    *[(b, False) for b in (b"0x1", b"1_0", b"1a", b"NaN", b"nan", b"Infinity", b"-Infinity", b"1e1.5")],
    *[(b, False) for b in (b"nul", b"nulll", b"Null", b"True", b"tru", b"undefined", b"'a'", b"")],
    (b'[1,"a",null,[],{"b":[{}]}]', True),
    (b'{"a":1,"a":2}', True),
    (b'{"role":1,"text":2}', True),
    *[(b, False) for b in (b"[1,]", b"[,1]", b"[,]", b"[1 2]", b"[1", b"[1}", b"[", b"]", b"[[]")],
    *[(b, False) for b in (b'{"a":1,}', b'{,"a":1}', b"{,}", b'{"a"}', b'{"a":}', b'{"a" 1}', b'{"a":1')],
    *[(b, False) for b in (b"{1:1}", b"{a:1}", b'{"a":1]', b'{"a":1 "b":2}', b'{"a",1}', b"{null:1}")],
    *[(b'"%b"' % b, True) for b in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\\ud800", b"\\udc00\\ud800")],
    *[(b'{"%b":1}' % b, True) for b in (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\\ud800", b"\\udc00\\ud800")],
    *[(b'"%b"' % b, False) for b in (b"\n", b"\0", b"\x1f", b"\t", b"\\x", b"\\u12", b"\\u12g4", b"\\")],
    *[(b'{"%b":1}' % b, False) for b in (b"\n", b"\0", b"\x1f", b"\t", b"\\x", b"\\u12", b"\\u12g4", b"\\")],
    (b'"\x7f\\u0000\\""', True),
    (b"\xef\xbb\xbf1", False),
    (b"1\x0b", False),
    (b"[" * 127 + b"]" * 127, True),
    (b"[" * 128 + b"]" * 128, True),
    (b"[" * 100_000 + b"]" * 100_000, True),
    (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, True),
    (b"[" * 100_000, False),
]


def check(document: bytes, values: list[str] | None) -> None:
    if values is None:
        with pytest.raises(JsonError) as raised:
            read_struct(document, EVENT)
        assert 0 <= raised.value.offset <= len(document)
    else:
        assert read_struct(document, EVENT) == values


class TestTakenAndRefused:
    @pytest.mark.parametrize(("document", "values"), SHAPES)
    def test_shapes_of_a_struct(self, document: bytes, values: list[str] | None) -> None:
        check(document, values)

    @pytest.mark.parametrize(("document", "values"), FIELDS)
    def test_fields(self, document: bytes, values: list[str] | None) -> None:
        check(document, values)

    @pytest.mark.parametrize(("document", "values"), ROLE_FORMS)
    def test_roles(self, document: bytes, values: list[str] | None) -> None:
        check(document, values)

    @pytest.mark.parametrize(("text", "value"), TEXTS)
    def test_texts_that_are_kept(self, text: bytes, value: str | None) -> None:
        check(with_text(text), None if value is None else ["user-message", value])

    @pytest.mark.parametrize(("value", "taken"), SKIPPED, ids=lambda value: repr(value)[:40])
    def test_values_that_are_skipped(self, value: bytes, taken: bool) -> None:
        check(with_extra(value), OK if taken else None)

    @pytest.mark.parametrize("document", [document for document, values in SHAPES[:6] if values])
    def test_every_prefix_is_refused(self, document: bytes) -> None:
        document = document.rstrip()
        for end in range(len(document)):
            check(document[:end], None)

    def test_a_header_has_three_fields(self) -> None:
        fields = {"formatVersion": None, "sessionId": None, "createdAt": None}
        assert read_struct(b'{"createdAt":"c","x":0,"sessionId":"b","formatVersion":"a"}', fields) == [
            "a",
            "b",
            "c",
        ]
        assert read_struct(b'["a","b","c"]', fields) == ["a", "b", "c"]
        for document in (
            b'["a","b"]',
            b'["a","b","c","d"]',
            b'{"formatVersion":"a","session_id":"b","createdAt":"c"}',
        ):
            with pytest.raises(JsonError):
                read_struct(document, fields)

    def test_an_error_says_where(self) -> None:
        with pytest.raises(JsonError, match=r"unknown variant 'x' at byte 11 of the JSON") as raised:
            read_struct(b'{"role":"x"}', EVENT)
        assert raised.value.offset == 11


class TestLongTexts:
    @pytest.mark.parametrize("part", [b"ab", b"\\n", b"a\\u00e9", b'\\"'])
    def test_no_length_is_too_long(self, part: bytes) -> None:
        text = part * 50_000
        assert read_struct(with_text(text), EVENT) == ["user-message", json.loads(b'"%b"' % text)]
        check(with_extra(b'"%b"' % text), OK)
        check(with_text(text + b"\n"), None)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)


class TestAnyJson:
    @given(
        role=st.sampled_from(ROLES),
        text=st.text(),
        extra=st.dictionaries(st.text().filter(lambda name: name not in EVENT), JSON_VALUES, max_size=3),
        ascii_only=st.booleans(),
        indent=st.sampled_from([None, 0, 2]),
    )
    def test_that_python_writes_is_taken(self, role, text, extra, ascii_only, indent) -> None:
        for value in ({**extra, "role": role, "text": text}, {"text": text, **extra, "role": {role: None}}):
            document = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
            assert read_struct(document, EVENT) == [role, text]

    @given(document=st.binary(max_size=60))
    def test_bytes_never_do_anything_else_than_be_refused(self, document: bytes) -> None:
        for whole in (document, with_extra(document), with_text(document), b'{"' + document):
            try:
                _, text = read_struct(whole, EVENT)
            except JsonError:
                continue
            text.encode()

    @given(
        document=st.lists(
            st.sampled_from([*b'{}[]:,"\\ \n0-1.e', *b"nulltrue"]).map(lambda byte: bytes([byte])),
            max_size=12,
        ).map(b"".join)
    )
    def test_that_is_skipped_follows_the_grammar(self, document: bytes) -> None:
        document = b"[[%b]]" % document  # so that no few bytes can close it and open another
        try:
            json.loads(document)
        except ValueError:
            check(with_extra(document), None)
        else:
            check(with_extra(document), OK)
