"""Patterns of statements about oneself, grouped by language."""

from holdfast.extract.patterns.english import ENGLISH
from holdfast.extract.patterns.other_languages import CHINESE, FRENCH, GERMAN, PORTUGUESE, SPANISH

LANGUAGES = (ENGLISH, SPANISH, GERMAN, FRENCH, PORTUGUESE, CHINESE)
