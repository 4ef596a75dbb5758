"""Patterns of statements about oneself, grouped by language."""

from __future__ import annotations

from holdfast.extract.patterns.english import ENGLISH
from holdfast.extract.patterns.others.asian import CHINESE, JAPANESE
from holdfast.extract.patterns.others.french import FRENCH
from holdfast.extract.patterns.others.german import GERMAN
from holdfast.extract.patterns.others.italian import ITALIAN
from holdfast.extract.patterns.others.portuguese import PORTUGUESE
from holdfast.extract.patterns.others.spanish import SPANISH

LANGUAGES = (ENGLISH, SPANISH, GERMAN, FRENCH, PORTUGUESE, ITALIAN, CHINESE, JAPANESE)
