"""Names that look alike: a skeleton that is equal for them, after Unicode's TS 39, and names that look like a role.

The table is derived from Unicode's confusables data: each character that looks like a Latin letter or a digit and that
compatibility normalization does not reach. Characters that look alike among themselves only, within other scripts, are
not in it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping

from holdfast.domain.visible_text import remove_hidden

# A letter or digit, and the code points that look like it.
_TWINS = """
2 1A7 3E8 14BF A644 A6EF A75A
3 1B7 21C 417 4E0 2CCC A76A A7AB 118CA 16F3B 1D206
4 13CE 118AF
5 1BC 118BB
6 431 13EE 2CD2 118D5
7 104D2 118C6 1D212
8 222 223 9EA A6A B03 1031A 1E8CB
9 9ED A67 B68 D6D 2CCA A76E 118AC 118CC 118D6
A 391 410 13AA 15C5 A4EE 102A0 16F40
B 392 412 13F4 15F7 A4D0 A7B4 10282 102A1 10301
C 3F9 421 13DF 2CA4 A4DA 102A2 10302 10415 1051C 118E9 118F2 1F74C
D 13A0 15DE 15EA A4D3
E 395 415 13AC 22FF 2D39 A4F0 10286 118A6 118AE
F 3DC 15B4 A4DD A798 10287 102A5 10525 118A2 118C2 1D213
G 50C 13C0 13F3 A4D6
H 397 41D 13BB 157C 2C8E A4E7 102CF
J 37F 408 13AB 148D A4D9 A7B2
K 39A 41A 13E6 16D5 2C94 A4D7 10518
L 13DE 14AA 2CD0 A4E1 1041B 10526 118A3 118B2 16F16 1D22A
M 39C 3FA 41C 13B7 15F0 16D6 2C98 A4DF 102B0 10311
N 39D 2C9A A4E0 10513
O 39F 41E 555 7C0 9E6 B20 B66 12D0 2C9E 2D54 3007 A4F3 10292 102AB 10404 104C2 10516 114D0 118B5 118E0
P 3A1 420 13E2 146D 2CA2 A4D1 10295
Q 2D55
R 1A6 13A1 13D2 1587 A4E3 104B4 16F35 1D216
S 405 54F 13D5 13DA A4E2 10296 10420 16F3A
T 3A4 422 13A2 22A4 27D9 2CA6 A4D4 10297 102B1 10315 118BC 16F0A 1F768
U 54D 1200 144C 222A 22C3 A4F4 104CE 118B8 16F42
V 474 667 6F7 13D9 142F 2D38 A4E6 A6DF 1051D 118A0 16F08 1D20D
W 51C 13B3 13D4 A4EA 118E6 118EF
X 3A7 425 166D 16B7 2573 2CAC 2D5D A4EB A7B3 10290 102B4 10317 10322 10527 118EC
Y 3A5 423 4AE 13A9 13BD 2CA8 A4EC 102B2 118A4 16F43
Z 396 13C3 A4DC 102F5 118A9 118E5
a 251 3B1 430 237A
b 184 42C 13CF 1472 15AF
c 3F2 441 1D04 2CA5 ABAF 1043D
d 501 13E7 146F A4D2
e 435 4BD 212E AB32
f 17F 584 1E9D A799 AB35
g 18D 261 581 1D83
h 4BB 570 13C2
i 131 269 26A 2DB 37A 3B9 456 4CF 13A5 2373 A647 AB75 118C3
j 3F3 458
l 196 1C0 399 406 4C0 5C0 5D5 5DF 627 661 6F1 7CA 16C1 2223 23FD 2C92 2D4F A4F2 FFE8 1028A 10309 10320 16F28
  1E8C7
n 578 57C
o 3BF 3C3 43E 585 5E1 647 665 6BE 6C1 6D5 6F5 966 A66 AE6 BE6 C02 C66 C82 CE6 D02 D20 D66 D82 E50 ED0 101D 1040
  10FF 1D0F 1D11 2C9F AB3D 1042C 104EA 118C8 118D7
p 3C1 440 2374 2CA3
q 51B 563 566
r 433 1D26 2C85 AB47 AB48 AB81
s 1BD 455 A731 ABAA 10448 118C1
u 28B 3C5 57D 1D1C A79F AB4E AB52 104F6 118D8
v 3BD 475 5D8 1D20 2228 22C1 ABA9 11706 118C0
w 26F 461 51D 561 1D21 AB83 1170A 1170E 1170F
x D7 445 1541 157D 166E 292B 292C 2A2F
y 263 28F 3B3 443 4AF 10E7 1D8C 1EFF AB5A 118DC
z 1D22 AB93 118C4
"""


def _read_table(table: str) -> dict[int, str]:
    letters: dict[int, str] = {}
    letter = ""
    for word in table.split():
        if len(word) == 1:
            letter = word
        else:
            letters[int(word, 16)] = letter
    return letters


LATIN_TWINS: Mapping[int, str] = _read_table(_TWINS)
# Letters that are like Latin ones in part or in sound, and framed letters: enough for a disguise, not for an identity.
LOOSE_TWINS: Mapping[int, str | int] = {
    **LATIN_TWINS,
    **str.maketrans(
        "вкмнтгпӏαεικνορτυωχγηđøռոօսցᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢłɡɑ",
        "bkmhtrnlaeikvoptuwxyndonnougabcdefghijklmnoprstuvwyzlga",
    ),
    **{block + at: chr(ord("a") + at) for block in (0x1F130, 0x1F150, 0x1F170, 0x1F1E6) for at in range(26)},
}
_WITHIN_LATIN = {ord("0"): "O", ord("1"): "l", ord("I"): "l", ord("|"): "l", ord("m"): "rn"}
_SKELETON = {**LATIN_TWINS, **_WITHIN_LATIN}
# Digits and signs that stand for letters in a disguise, and small letters that capitals make alike.
_DISGUISES = str.maketrans("0134578@$!|i", "oleastba" + "slll")
_LONG_ROLES = ("system", "assistant", "developer")
_SHORT_ROLES = ("user", "tool", "human", "model", "function")


def skeleton(name: str) -> str:
    """Return a text that is equal for names that look alike. It is for comparison only."""
    if not name.isascii():
        # Before the normalization too: it would turn some lookalikes into other letters.
        name = unicodedata.normalize("NFKC", remove_hidden(name, anywhere=True).translate(LATIN_TWINS))
    return " ".join(name.translate(_SKELETON).split())


def find_lookalike(name: str, others: Iterable[str]) -> str | None:
    """Return the first of the others that looks like the name, without being equal to it."""
    alike = skeleton(name)
    # Most names are of ASCII letters; a pattern rejects them several times faster than a skeleton of each.
    spelling = r"\s+".join(map(re.escape, alike.split())).replace("rn", "(?:rn|m)")
    pattern = re.compile(rf"\s*{spelling.replace('l', '[lI1|]').replace('O', '[O0]')}\s*")
    return next(
        (
            other
            for other in others
            if other != name and (pattern.fullmatch(other) if other.isascii() else skeleton(other) == alike)
        ),
        None,
    )


def looks_like_role(name: str) -> bool:
    """True if a name could be taken for a role of a chat, whatever its case, spelling and letters."""
    letters = _plain_letters(name)
    return any(role in letters for role in _LONG) or not _SHORT.isdisjoint(
        (letters, *map(_plain_letters, re.findall(r"\w+", name)))
    )


def _plain_letters(name: str) -> str:
    visible = unicodedata.normalize("NFKD", remove_hidden(name, anywhere=True).translate(LATIN_TWINS)).casefold()
    return re.sub("[^a-z]", "", visible.translate(LOOSE_TWINS).casefold().translate(_DISGUISES))


_LONG = frozenset(map(_plain_letters, _LONG_ROLES))
_SHORT = frozenset(map(_plain_letters, _SHORT_ROLES))
