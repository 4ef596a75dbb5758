"""Patterns of languages other than English: name, home and tastes."""

from __future__ import annotations

from holdfast.extract.patterns.rules import ExtractionRule, Language, Needs, Since, compile_pattern


def _basic(
    names: str, homes: str, likes: str, hates: str, texts: tuple[str, str, str, str]
) -> tuple[ExtractionRule, ...]:
    """Build the same four rules for another language; `texts` are their templates."""
    return (
        ExtractionRule(compile_pattern(rf"(?:{names}) (?P<capital_name>.+)"), texts[0], "name"),
        ExtractionRule(compile_pattern(rf"(?:{homes}) (?P<home>.+)"), texts[1], "lives_in", Since.SAID),
        ExtractionRule(compile_pattern(rf"(?:{likes}) (?P<taste>.+)"), texts[2], "likes:{taste}", needs=Needs.WHOLE),
        ExtractionRule(compile_pattern(rf"(?:{hates}) (?P<taste>.+)"), texts[3], "likes:{taste}", needs=Needs.WHOLE),
    )


SPANISH = Language(
    "El usuario",
    compile_pattern(r"\b(?:me|mi|vivo|odio)\b"),
    compile_pattern(r"\b(?:si|ojalá|quizás?|tal vez|dijo|dice|dicen|cree|imagina|como si|gustaría|antes|no sé)\b"),
    _basic(
        "me llamo|mi nombre es",
        "(?:yo )?vivo en",
        "(?:a mí )?me (?:gusta|gustan|encanta|encantan)(?: mucho| muchísimo)?",
        "(?:a mí )?no me (?:gusta|gustan)(?: nada)?|odio",
        (
            "El nombre de {who} es {capital_name}.",
            "{who} vive en {home}.",
            "A {who} le gusta {taste}.",
            "A {who} no le gusta {taste}.",
        ),
    ),
)
GERMAN = Language(
    "Der Nutzer",
    compile_pattern(r"\b(?:ich|mein)\b"),
    compile_pattern(
        r"\b(?:wenn|falls|würde|hätte|wäre|vielleicht|sagt|sagte|meint|glaubt|denkt|ob"
        r"|früher|angenommen|nicht mehr)\b"
    ),
    _basic(
        "ich hei(?:ß|ss)e|mein name ist",
        "ich (?:wohne|lebe) (?:jetzt |zurzeit )?in",
        "ich (?:mag|liebe)(?: sehr| gerne?)?",
        "ich (?:hasse|mag kein(?:e|en)?)",
        ("{who} heißt {capital_name}.", "{who} wohnt in {home}.", "{who} mag {taste}.", "{who} mag kein {taste}."),
    ),
)
FRENCH = Language(
    "L'utilisateur",
    compile_pattern(r"\b(?:je|j'\w+|mon)\b"),
    compile_pattern(r"\b(?:si|peut-être|dit|disait|pense|croit|imagine|aimerais|comme si|avant|jamais|plus)\b"),
    _basic(
        "je m'appelle|mon nom est|mon prénom est",
        "(?:je vis|j'habite) (?:à|en|au)",
        "j'(?:aime|adore)(?: beaucoup| bien)?",
        "je (?:n'aime pas|déteste)",
        (
            "{who} s'appelle {capital_name}.",
            "{who} habite à {home}.",
            "{who} aime {taste}.",
            "{who} n'aime pas {taste}.",
        ),
    ),
)
PORTUGUESE = Language(
    "O utilizador",
    compile_pattern(r"\b(?:eu|meu|moro|vivo|gosto|adoro|odeio|chamo-me|me)\b"),
    compile_pattern(r"\b(?:se|talvez|disse|diz|dizem|acha|imagina|quem dera|gostaria|antes|como se)\b"),
    _basic(
        "(?:o )?meu nome é|(?:eu )?me chamo|(?:eu )?chamo-me",
        "(?:eu )?(?:moro|vivo) (?:em|no|na)",
        "(?:eu )?(?:adoro|gosto(?: muito)? d[eoa]s?)",
        "(?:eu )?(?:odeio|não gosto(?: nada)? d[eoa]s?)",
        (
            "{who} chama-se {capital_name}.",
            "{who} mora em {home}.",
            "{who} gosta de {taste}.",
            "{who} não gosta de {taste}.",
        ),
    ),
)

_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高梁郑罗宋谢唐韩曹许邓萧冯曾程蔡彭潘袁于董余苏叶吕魏蒋田杜丁沈姜范江傅钟卢汪戴崔任陆廖姚方"
    "金"
    "邱夏谭韦贾邹石熊孟秦阎薛侯雷白龙段郝孔邵史毛常万顾赖武康贺严尹钱施牛洪龚"
)
_HANZI = r"[\u4e00-\u9fff]"
CHINESE = Language(
    "用户",
    compile_pattern("我"),
    compile_pattern(
        "如果|要是|假如|希望|可能|也许|听说|他说|她说|以前|曾经|要不是|好像|据说|说我|觉得我|以为|妈说|爸说|说：|想"
    ),
    (
        ExtractionRule(
            compile_pattern(rf"(?:我叫|我的名字叫|我的名字是|我名叫)(?P<hanzi>[{_SURNAMES}]{_HANZI}{{1,2}})$"),
            "{who}叫{hanzi}。",
            "name",
        ),
        ExtractionRule(
            compile_pattern(rf"我(?:现在)?(?:家)?住在(?P<hanzi>{_HANZI}{{2,8}})$"),
            "{who}住在{hanzi}。",
            "lives_in",
            Since.SAID,
        ),
        ExtractionRule(
            compile_pattern(rf"我(?:很|最|特别|非常|超|超级)?(?:喜欢|爱吃|爱喝)(?P<hanzi>{_HANZI}{{1,8}})$"),
            "{who}喜欢{hanzi}。",
            "likes:{hanzi}",
            needs=Needs.WHOLE,
        ),
        ExtractionRule(
            compile_pattern(rf"我(?:很|最|特别|非常)?(?:不喜欢|讨厌)(?P<hanzi>{_HANZI}{{1,8}})$"),
            "{who}不喜欢{hanzi}。",
            "likes:{hanzi}",
            needs=Needs.WHOLE,
        ),
        ExtractionRule(
            compile_pattern(
                r"我(?:的)?(?P<word>妈妈|爸爸|母亲|父亲|妻子|老婆|丈夫|老公|上司|老板)"
                rf"(?:叫|名叫|的名字是|的名字叫)(?P<hanzi>[{_SURNAMES}]{_HANZI}{{1,2}})$"
            ),
            "{who}的{word}叫{hanzi}。",
            "{word}",
        ),
        ExtractionRule(
            compile_pattern(
                r"我(?:的)?(?P<word>姐姐|妹妹|哥哥|弟弟|儿子|女儿|同事|朋友|表弟|表妹|表哥|表姐|叔叔|姑姑|舅舅|阿姨)"
                rf"(?:叫|名叫|的名字是|的名字叫)(?P<hanzi>[{_SURNAMES}]{_HANZI}{{1,2}})$"
            ),
            "{who}的{word}叫{hanzi}。",
            "{word}:{hanzi}",
        ),
    ),
)
