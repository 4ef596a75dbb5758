"""Patterns of Chinese and Japanese."""

from __future__ import annotations

from holdfast.extract.patterns.rules import Language, compile_pattern, rules_of, words

_SURNAMES = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高梁郑罗宋谢唐韩曹许邓萧冯曾程蔡彭潘袁于董余苏叶吕魏蒋田杜丁沈姜范江傅钟卢汪戴崔任陆廖姚方"
    "金邱夏谭韦贾邹石熊孟秦阎薛侯雷白龙段郝孔邵史毛常万顾赖武康贺严尹钱施牛洪龚"
)
_HANZI = r"[\u4e00-\u9fff]"
_ONE = "妈妈|爸爸|母亲|父亲|妻子|老婆|丈夫|老公|上司|老板|女朋友|男朋友|爱人"
_MANY = "姐姐|妹妹|哥哥|弟弟|儿子|女儿|同事|朋友|表弟|表妹|表哥|表姐|叔叔|姑姑|舅舅|阿姨|狗|猫"
_NAME = rf"(?P<hanzi>[{_SURNAMES}]{_HANZI}{{1,2}})$"
_ANY = rf"{_HANZI}{{1,10}}"
_DAY = r"(?P<date>[\d一二三四五六七八九十零〇年月日号]{2,14})"

CHINESE = Language(
    "用户",
    words(""),
    compile_pattern(
        "如果|要是|假如|希望|可能|也许|听说|他说|她说|以前|曾经|要不是|好像|据说|说我|觉得我|以为|妈说|爸说|说：|想"
    ),
    rules_of(
        (rf"(我叫|我的名字叫|我的名字是|我名叫){_NAME}", "{who}叫{hanzi}。", "name"),
        (rf"我(现在)?(家)?住在(?P<hanzi>{_HANZI}{{2,8}})$", "{who}住在{hanzi}。", "lives_in"),
        (rf"我(刚|最近)?搬到了?(?P<hanzi>{_HANZI}{{2,8}}?)了?$", "{who}搬到{hanzi}。", "lives_in"),
        (rf"我来自(?P<hanzi>{_HANZI}{{2,6}})$", "{who}来自{hanzi}。", "is_from"),
        (
            rf"我(很|最|特别|非常|超|超级)?(喜欢|爱吃|爱喝)(?P<hanzi>{_HANZI}{{1,8}})$",
            "{who}喜欢{hanzi}。",
            "likes:{hanzi}",
        ),
        (rf"我(很|最|特别|非常)?(不喜欢|讨厌)(?P<hanzi>{_HANZI}{{1,8}})$", "{who}不喜欢{hanzi}。", "likes:{hanzi}"),
        (rf"我的?(?P<word>{_ONE})(叫|名叫|的名字是|的名字叫){_NAME}", "{who}的{word}叫{hanzi}。", "{word}"),
        (rf"我的?(?P<word>{_MANY})(叫|名叫|的名字是|的名字叫){_NAME}", "{who}的{word}叫{hanzi}。", "{word}:{hanzi}"),
        (rf"我(家)?有(?P<hanzi>[一两二三四五]([只条个匹位]){_HANZI}{{1,6}})$", "{who}有{hanzi}。", "has:{hanzi}"),
        (
            rf"我(养|买)了(?P<hanzi>[一两二三四五]([只条个匹位辆台把]){_HANZI}{{1,6}})$",
            "{who}有{hanzi}。",
            "has:{hanzi}",
        ),
        (rf"我(现在)?在(?P<hanzi>{_ANY}?)(工作|上班)$", "{who}在{hanzi}工作。", "works_at"),
        (rf"我是(一名|一个|一位|个)(?P<hanzi>{_HANZI}{{2,8}})$", "{who}是{hanzi}。", "occupation"),
        (
            r"我是(?P<hanzi>老师|医生|护士|律师|工程师|程序员|学生|大学生|研究生|会计|司机|厨师|设计师|记者|警察|作家|演员|退休教师|翻译)$",
            "{who}是{hanzi}。",
            "occupation",
        ),
        (r"我(已经)?退休$", "{who}已退休。", "occupation"),
        (rf"我在(?P<hanzi>{_ANY}?)(学|学习|读)(?P<hanzi1>{_HANZI}{{2,8}})$", "{who}在{hanzi}学习{hanzi1}。", "studies"),
        (rf"我(正)?在学(习)?(?P<hanzi>{_HANZI}{{1,8}})$", "{who}在学{hanzi}。", "learns:{hanzi}"),
        (rf"我会(说|讲)(?P<hanzi>{_HANZI}{{2,8}})$", "{who}会说{hanzi}。", "speaks:{hanzi}"),
        (rf"我会(弹|拉|吹|打)(?P<hanzi>{_HANZI}{{1,6}})$", "{who}会演奏或打{hanzi}。", "plays:{hanzi}"),
        (rf"我对(?P<hanzi>{_HANZI}{{1,8}}?)过敏$", "{who}对{hanzi}过敏。", "allergic:{hanzi}"),
        (rf"我(从来)?不吃(?P<hanzi>{_HANZI}{{1,6}})$", "{who}不吃{hanzi}。", "eats:{hanzi}"),
        (rf"我(从来)?不喝(?P<hanzi>{_HANZI}{{1,6}})$", "{who}不喝{hanzi}。", "eats:{hanzi}"),
        (r"我(是素食者|吃素)$", "{who}吃素。", "diet"),
        (
            rf"我有(?P<hanzi>糖尿病|高血压|哮喘|偏头痛|关节炎|近视|{_HANZI}{{1,4}}病)$",
            "{who}有{hanzi}。",
            "health:{hanzi}",
        ),
        (rf"我的?生日(是|在){_DAY}$", "{who}的生日是{date}。", "birthday"),
        (rf"我(是|出生于|生于|出生在){_DAY}(出生|生)?的?$", "{who}生于{date}。", "born_on"),
        (r"我(今年)?(?P<date>[\d一二三四五六七八九十]{1,4}岁)$", "{who}{date}。", "age"),
        (r"我(已经)?(?P<hanzi>结婚|离婚|订婚|单身)$", "{who}{hanzi}。", "marital"),
        (
            r"(请)?(以后)?(一直|总是|永远)?用(?P<hanzi>中文|英文|英语|法语|德语|日语|西班牙语|普通话)回答(我)?$",
            "{who}要求用{hanzi}回答。",
            "wants:language",
        ),
        (rf"(请)?叫我(?P<hanzi>{_HANZI}{{1,3}})$", "{who}希望被叫做{hanzi}。", "called"),
        (
            rf"我每(天|周|个周末|周[一二三四五六日天])(?P<hanzi>{_HANZI}{{2,8}})$",
            "{who}的习惯是{hanzi}。",
            "routine:{hanzi}",
        ),
    ),
    script=compile_pattern("我|请"),
)

_KANA = r"[\u3040-\u30ff\u4e00-\u9fffー]"
_I = "(?:私|わたし|僕|ぼく|俺)"
_END = "(です|だ|でした|である)?(よ|ね|！)?$"
_TO_DATE = r"(?P<date>[\d一二三四五六七八九十年月日]{2,12})"
_KIN = "妻|夫|母|父|姉|妹|兄|弟|息子|娘|犬|猫|彼女|彼氏|祖母|祖父|上司"

JAPANESE = Language(
    "ユーザー",
    words(""),
    compile_pattern(
        r"もし|たら|なら|かも|たい|らしい|そうです|と言|と思|か$|かな|でしょう|だろう|昔|前は|ください.*今回|彼は|彼女は.*です"
    ),
    rules_of(
        (rf"({_I}の)?名前は(?P<kana>{_KANA}{{2,8}}?){_END}", "{who}の名前は{kana}。", "name"),
        (
            rf"({_I}は)?(今|現在)?、?(?P<kana>{_KANA}{{2,8}}?)に住んで(いる|います|る|ます)$",
            "{who}は{kana}に住んでいる。",
            "lives_in",
        ),
        (rf"({_I}は)?(?P<kana>{_KANA}{{2,8}}?)に引っ越し(た|ました)$", "{who}は{kana}に引っ越した。", "lives_in"),
        (rf"({_I}は)?(?P<kana>{_KANA}{{2,8}}?)(出身|の出身){_END}", "{who}は{kana}出身。", "is_from"),
        (rf"({_I}は)?(?P<kana>{_KANA}{{1,10}}?)が(大|とても)?好き{_END}", "{who}は{kana}が好き。", "likes:{kana}"),
        (rf"({_I}は)?(?P<kana>{_KANA}{{1,10}}?)が(大)?(嫌い|苦手){_END}", "{who}は{kana}が苦手。", "likes:{kana}"),
        (
            rf"({_I}は)?(?P<kana>{_KANA}{{1,10}}?)(に|の)?アレルギーが(ある|あります)$",
            "{who}は{kana}アレルギーがある。",
            "allergic:{kana}",
        ),
        (rf"({_I}は)?(?P<kana>{_KANA}{{1,10}}?)アレルギー{_END}", "{who}は{kana}アレルギー。", "allergic:{kana}"),
        (
            rf"({_I}は)?(?P<kana>{_KANA}{{1,10}}?)(は|を)?(食べない|食べません|飲まない|飲みません|食べられません|飲めません)$",
            "{who}は{kana}を口にしない。",
            "eats:{kana}",
        ),
        (
            rf"({_I}は)?(ベジタリアン|菜食主義者|ヴィーガン|ビーガン){_END}",
            "{who}はベジタリアン。",
            "diet",
        ),
        (rf"({_I}の)?誕生日は{_TO_DATE}{_END}", "{who}の誕生日は{date}。", "birthday"),
        (rf"({_I}は)?{_TO_DATE}(生まれ|に生まれました|に生まれた){_END}", "{who}は{date}生まれ。", "born_on"),
        (rf"({_I}は)?(?P<date>\d{{1,3}}歳){_END}", "{who}は{date}。", "age"),
        (
            rf"({_I}は)?(?P<kana>{_KANA}{{1,12}}?)(で|に)(働いて|勤めて|勤務して)(いる|います|る|ます)$",
            "{who}は{kana}で働いている。",
            "works_at",
        ),
        (
            rf"({_I}は)?(?P<kana>看護師|医者|教師|先生|弁護士|エンジニア|会社員|学生|大学生|主婦|デザイナー|プログラマー|公務員|料理人|美容師|翻訳者|保育士){_END}",
            "{who}は{kana}。",
            "occupation",
        ),
        (
            rf"({_I}は)?(?P<kana>{_KANA}{{1,10}}?)を(勉強|専攻)して(いる|います|る|ます)$",
            "{who}は{kana}を勉強している。",
            "studies:{kana}",
        ),
        (
            rf"({_I}は)?(?P<kana>{_KANA}{{1,6}}語)を?(が)?(話せ|話し)(る|ます)$",
            "{who}は{kana}を話す。",
            "speaks:{kana}",
        ),
        (
            rf"(うちに|家に|{_I}は)?(?P<kana>犬|猫|うさぎ|ハムスター|鳥|金魚)を?(が)?(\S{{0,4}})?(飼って(いる|います|る|ます)|いる|います)$",
            "{who}は{kana}を飼っている。",
            "has:{kana}",
        ),
        (
            rf"({_I}の|うちの)?(?P<word>{_KIN})の名前は(?P<kana>{_KANA}{{1,8}}?){_END}",
            "{who}の{word}の名前は{kana}。",
            "{word}:{kana}",
        ),
        (rf"({_I}は)?(?P<kana>結婚|離婚|婚約)して(いる|います)$", "{who}は{kana}している。", "marital"),
        (rf"({_I}の)?趣味は(?P<kana>{_KANA}{{1,10}}?){_END}", "{who}の趣味は{kana}。", "hobby:{kana}"),
        (
            r"(いつも|常に|必ず|これからは)?、?(?P<kana>日本語|英語|中国語|敬語|簡潔)(で|に)(答えて|返事して|話して|書いて)(ください|下さい|ね)?$",
            "{who}は{kana}での回答を望む。",
            "wants:language",
        ),
        (rf"(?P<kana>{_KANA}{{1,8}}?)(って|と)呼んで(ください|下さい|ね)?$", "{who}は{kana}と呼ばれたい。", "called"),
    ),
    script=compile_pattern(r"[\u3040-\u30ff]"),
)
