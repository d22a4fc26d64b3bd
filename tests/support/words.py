"""Token labels for synthetic traces: ordinary ones, and hostile ones that must be drawn as plain text."""

WORDS = (
    "def ␣reverse _list (head ): ↵ ␣␣␣␣ prev ␣= ␣None current ␣while ␣current : next _node . "
    "␣the ␣a ␣of ␣and ␣to ␣in ␣linked ␣list ␣is ␣that ␣each ␣node ␣points ␣previous , ␣function ␣returns ␣new "
    "␣head ␣Python ␣which ␣loop ␣until ␣end ing ed s ␣iterates ␣through ␣pointer ␣we ␣can ␣this ␣value ␣return "
    "␣1 0 ) ( ␣“ ␣temporary ␣variable ␣store ␣move ␣forward ␣one ␣step ␣after ␣another ␣not ␣None ␣if ␣then ␣else ! ; "
    "␣verification ␣language ␣model ␣small ␣large ␣fast ␣slow ␣draft ␣tree ␣token ␣accepted ␣rejected ␣prefix ␣cache"
).split()
SPECIALS = (("‹|im_start|›", "special"), ("‹|im_end|›", "special"), ("⟨E2 96⟩", "bytes"), ("␣×8", "space"))
HOSTILE = (
    '<img src=x onerror="window.__x=1">',
    "${window.__x=1}",
    "`+(window.__x=1)+`",
    "{{window.__x=1}}",
    "\\u0041\\x41\\",
    "</svg><script>window.__x=1</script>",
    "‮evil‬\u200b",
    "NUL\0inside",
    "A" * 2048,
    "'\"--><!--",
    "é́́́́́́́👩‍👩‍👧‍👦",
    "&lt;b&gt;&amp;",
    "שלום",
    "\r\n\t",
    "constructor",
    "__proto__",
)


def hex_of(label: str) -> str:
    """The bytes of an ordinary label's token, in hex."""
    return label.replace("␣", " ").replace("↵", "\n").encode().hex()
