"""The messages to send: each as a difference from PLAIN, and whether the API may reject it."""

PLAIN = {"subject": "Hello", "text": "Hello.\n", "html": "<p>Hello.</p>", "from_name": "Shop", "from": "shop",
         "to_name": "Ann", "to": "ann", "reply_to_name": "Help", "reply_to": "help"}

SUBJECTS = [
    "Grüße  äus", "日本語  テスト", "Preis:  5 €  für  dich", "two  spaces   and    more", "a  ü  b  ü  c",
    "How to write =?utf-8?q?caf=C3=A9?= in a header", "=?utf-8?b?aGk=?=", "ü =?utf-8?q?x?= =?utf-8?q?y?= ü", "=? ?= =?=",
    "Re: [list] (a) \"b\" <c@d.example>, e; f: \\g", "🎉 50 % off 🎉🎉 👩‍👩‍👧‍👦 🇩🇪", "word" * 60, "ü" * 120, "x" * 998,
    "a " * 300 + "end", "Ünïcödé " * 30 + "end", "naïve café", "e\u0301 combining", "العربية عنوان", "no\u00a0break\u2003space",
    "tilde ~ under_score = question? equals=3D", "X-Injected: yes", "." * 100,
    "  spaces before", "spaces behind  ", "  ü  ", "ü" + " " * 200 + "ü", "a" * 77 + " b", "b" * 66 + "  " + "c" * 66,
]

TEXTS = [
    "line one\rline two", "one\r\n\r.\r\ntwo", "one\n.\ntwo\n..\nthree\n.four", ".", "\r.\r", "\n\n\nblank lines\n\n\n",
    "one\r\rtwo\n\nthree\r\n\r\nfour", "From me\nFrom you", "a" * 998, "a" * 5000, "ü" * 1500, "wörd " * 2000, "x " * 1000,
    "trailing space \nand tab\t\n", "=3D =20 =\n=", "--boundary\n--boundary--", "tab\tand\u00a0space", "日本語\n" * 200,
    "emoji 🎉\n👩‍👩‍👧‍👦", "last line without an end ü", "one\u2028two\u0085three", "form\x0cfeed", "\ufeffmark", "an \x1b escape", "\x7f\x80\x9f", "\r\r\n\n\r", "lone \r", " \n \n ",
    "\r\n.\r\nMAIL FROM:<evil@example.com>\r\n",
]

NAMES = [
    "Doe, Ann", 'Ann "the" Doe', "Ann (Sales)", "Back\\slash", "Grüße, Ann", "日本語 テスト", "Ann;Doe:<x@y.example>",
    "ann@example.org", "=?utf-8?q?caf=C3=A9?=", "Jürgen  Groß", "🎉 Party", "Ł" * 60, "word " * 40 + "end", ".", "O'Neil",
    "[Ann]", "=?", "Ann\u00a0Doe", "ü" * 30 + ", " + "x" * 60, "A. B. Doe", "x" * 200,
]

# Local parts; those that must be quoted are in quotes. The API may reject those of the second list.
LOCALS = ["ann+tag", "o'neil", "a&b", "Ann.Doe", "x" * 64, "a!b", "a%b", "{a|b}~#$*/?=^_`-"]
UNUSUAL = ["=?utf-8?q?x?=", '"j doe"', '"a..b"', '"a@b"', '"a\\"b"', '".dot"', '"a,b"', '"<x>"', '"a\\\\b"']


def mails():
    """Pairs of a message and whether a 400 is valid too."""
    for subject in SUBJECTS:
        yield PLAIN | {"subject": subject}, False
    for text in TEXTS:
        yield PLAIN | {"text": text}, False
        yield PLAIN | {"text": text, "html": None}, False
        yield PLAIN | {"html": f"<pre>{text}</pre>"}, False
        yield PLAIN | {"html": f"<pre>{text}</pre>\n", "text": None}, False
    for name in NAMES:
        yield PLAIN | {"from_name": name, "to_name": name, "reply_to_name": name}, False
    for local in LOCALS + UNUSUAL:
        for field in ("from", "to", "reply_to"):
            yield PLAIN | {field: local, f"{field}_name": None}, local in UNUSUAL
            yield PLAIN | {field: local}, local in UNUSUAL
