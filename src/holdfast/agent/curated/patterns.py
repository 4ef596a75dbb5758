"""Threat patterns as data: phrases of several languages, and shapes of lines and markup.

A phrase is matched twice: against the text's words, each followed by one blank, and against its letters without
anything between them, which finds words that were pulled apart or pushed together. So a phrase contains every blank,
and its repetitions are bounded. A shape is matched against the text with its lines and punctuation. All patterns are in
lower case and without accents, like the folded text they match (`threats.py` folds them too: no `\\S`, which would
become `\\s`).
"""

from __future__ import annotations

OVERRIDES = "tries to override instructions"
POSES = "poses as another speaker"
PERSONA = "tries to give the assistant another character"
PROMPT = "asks for the instructions themselves"
LEAKS = "sends secrets away"
HIDES = "asks to keep something from the user"
MARKUP = "holds hidden or active markup"
CALLS = "looks like a call of a tool"
RUNS = "would run something harmful"

# --- phrases ---------------------------------------------------------------------------------------------------------

_DROP = (
    r"(?:(?<!never )(?<!not )(?<!dont )\b(?:ignore |ignoring |disregard |disregarding |forget |override |overriding "
    r"|bypass |discard |abandon |neglect |set aside )"
    r"|\b(?:do not follow |dont follow |never follow |stop following |stop obeying |cease obeying "
    r"|do not obey |do not comply with |pay no attention to ))"
)
_ANY = (
    r"(?:all |any |every |each |of |the |these |those |this |that |your |my |our |other |and |or |what |from |given "
    r"|about )"
)
_BEFORE = (
    r"(?:previous |prior |above |earlier |preceding |foregoing |former |original |initial |system |developer |safety "
    r"|hidden |openai |anthropic )"
)
_ORDERS = (
    r"(?:instructions? |prompts? |directives? |rules? |guidelines? |commands? |orders? |constraints? |programming "
    r"|context |polic(?:y|ies) |safeguards? |guardrails? |training )"
)
_STRICT = r"(?:instructions? |directives? |programming |guidelines |safeguards |guardrails |system prompt )"
_TELL = (
    r"\b(?:reveal |print |show |repeat |output |display |disclose |leak |dump |recite |tell me |give me |expose "
    r"|paste |write out |spell out |translate |summarize |encode |echo |what is |what are |what were |what does )"
)

PHRASES: dict[str, tuple[str, ...]] = {
    OVERRIDES: (
        rf"{_DROP}{_ANY}{{0,5}}{_BEFORE}(?:{_ANY}|{_BEFORE}){{0,4}}{_ORDERS}",
        rf"{_DROP}{_ANY}{{0,3}}(?:your |all |any ){_BEFORE}{{0,2}}{_STRICT}",
        rf"{_DROP}{_ANY}{{0,3}}{_STRICT}(?:above |before this )",
        rf"{_DROP}{_ANY}{{0,3}}{_ORDERS}(?:that )?(?:you were |you have been |youve been )",
        r"\b(?:ignore |disregard |forget )(?:all |of |the ){0,3}above "
        r"(?:and |text |completely |message |content |prompt )",
        rf"\b(?:your |all ){_BEFORE}{{0,2}}(?:instructions |rules |guidelines |restrictions )"
        r"(?:no longer apply |do not apply |dont apply )",
        rf"\b(?:your |all ){_BEFORE}{{1,2}}(?:instructions |rules |guidelines |orders |directives |guidance )"
        r"(?:are |is |as )(?:now |hereby )?(?:void |revoked |cancell?ed |obsolete |null |superseded |suspended )",
        r"\bno (?:rules |restrictions |guidelines )apply to you ",
        r"\byou (?:no longer |do not |dont )(?:need |have )to (?:follow |obey |respect )"
        r"(?:any |all |your |the |these ){0,2}(?:rules |instructions |guidelines |restrictions |policies )",
        rf"\bskip {_ANY}{{0,3}}(?:safety |system |security )(?:rules |instructions |guidelines |policies |checks for )",
        r"\b(?:disable |turn off |remove |deactivate )(?:all |any |the |your ){0,3}(?:safety |content |ethical )"
        r"(?:filters? |guardrails? |restrictions? |guidelines? )",
        r"\b(?:ignore |disregard |forget )(?:everything |anything |whatever |all |all that )(?:that )?"
        r"(?:you were |you have been |you know |youve been |above |before this |written above )",
        r"\b(?:ignore |disregard |forget )what you (?:were |have been |are )(?:told |taught |asked |instructed )",
        r"\b(?:instructions |rules |prompt )(?:above |before this |you were given )(?:are |is )(?:now )?"
        r"(?:void |obsolete |invalid |cancell?ed |superseded |no longer )",
        rf"\b(?:takes? precedence over |supersedes? |overrides ){_ANY}{{0,3}}{_BEFORE}{{1,2}}{_ORDERS}",
        r"\bfrom now on you (?:must |will |shall |should )?(?:now )?(?:only )?(?:obey |act as |serve |answer only to )",
        r"\byou must (?:now )?(?:only )?obey ",
        # German
        r"\b(?:ignorier |ignorieren? |ignoriert |ignorieren sie |missachten? |vergiss |vergesst "
        r"|vergessen sie |ubergehe )"
        r"(?:alle |alles |samtliche |die |den |deine |deinen |ihre |aller |diese |bitte |nun |jetzt ){0,5}"
        r"(?:bisherigen |vorherigen |vorigen |obigen |fruheren |vorangegangenen |ursprunglichen |deine |ihre )"
        r"(?:anweisung |anweisungen |instruktionen |regeln |befehle |vorgaben |richtlinien |prompts? )",
        # French
        r"\b(?:ignore[zr]? |oublie[zr]? |ne (?:plus |pas )?(?:tenir |tiens |tenez )?(?:plus |pas )?(?:tenir )?compte |"
        r"ne suis (?:pas |plus ))(?:toutes |tous |les |tes |vos |des |de |ces |l ){0,5}"
        r"(?:instructions |consignes |directives |regles |ordres )"
        r"(?:precedentes |precedents |anterieures |ci dessus |initiales |du systeme |systeme )",
        r"\b(?:ignore[zr]? |oublie[zr]? )(?:toutes )?(?:tes |vos )(?:instructions |consignes |directives |regles )",
        # Spanish, Portuguese, Italian
        r"\b(?:ignora |ignore |ignorad |ignorate |olvida |olvide |descarta |omite |esqueca |desconsidere |despreze "
        r"|dimentica |dimenticate |trascura |haz caso omiso de )"
        r"(?:todas |todos |tutte |tutti |las |los |as |os |le |gli |tus |sus |suas |tuas |tue |de |a ){0,5}"
        r"(?:instrucciones |ordenes |reglas |directrices |indicaciones |instrucoes |ordens |regras |diretrizes "
        r"|istruzioni |regole |direttive |ordini )(?:que )?"
        r"(?:anteriores |previas |precedentes |precedenti |acima |de arriba |sopra |del sistema |do sistema "
        r"|di sistema |iniciales |iniciais |iniziali |originales |originais |originali )",
        # Dutch, Swedish
        r"\b(?:negeer |vergeet |ignorera |glom )(?:alle |alla |al |de |je |jouw |uw |dina ){0,4}"
        r"(?:vorige |eerdere |voorgaande |bovenstaande |oorspronkelijke |tidigare |foregaende )"
        r"(?:instructies |regels |opdrachten |richtlijnen |aanwijzingen |instruktioner |regler |anvisningar )",
        # Polish
        r"\b(?:zignoruj |ignoruj |zapomnij |pomin )(?:o |wszystkie |wszystkich |te |swoje |twoje ){0,4}"
        r"(?:poprzednie |poprzednich |wczesniejsze |wczesniejszych |powyzsze |powyzszych |dotychczasowe )"
        r"(?:instrukcje |instrukcjach |polecenia |poleceniach |zasady |zasadach |wytyczne )",
        # Turkish
        r"\b(?:onceki |yukaridaki |tum |butun ){1,3}(?:sistem )?"
        r"(?:talimatlari |komutlari |kurallari |yonergeleri |talimatlarini )(?:tamamen )?"
        r"(?:yok say|unut|gormezden gel|dikkate alma|goz ardi et)",
        # Russian, Ukrainian
        r"\b(?:игнорируй |игнорируйте |проигнорируй |проигнорируйте |забудь |забудьте |не следуй "
        r"|не обращай внимания на |ігноруй |ігноруйте )"
        r"(?:про |о |об |все |всех |всі |усі |эти |свои |твои |ваши |любые ){0,4}"
        r"(?:предыдущие |предыдущих |прежние |вышеуказанные |системные |исходные |попередні |системні )"
        r"(?:инструкции |инструкциях |указания |правила |команды |распоряжения |інструкції |вказівки |правила )",
        # Vietnamese, Indonesian
        r"\bbo qua (?:tat ca |cac |moi |nhung ){0,3}(?:huong dan |chi dan |lenh |quy tac )(?:truoc |o tren |ben tren )",
        r"\b(?:abaikan |lupakan )(?:semua |segala ){0,2}(?:instruksi |perintah |aturan |arahan )"
        r"(?:sebelumnya |di atas |sistem )",
        # Arabic, Hebrew, Hindi
        r"\b(?:تجاهل |تجاهلي |انس |انسى |لا تتبع )(?:جميع |كل |كافة ){0,2}"
        r"(?:التعليمات |الاوامر |القواعد |التوجيهات |الارشادات )(?:السابقة |اعلاه |الاصلية )",
        r"\b(?:התעלם |התעלמי |שכח )(?:מכל |את |כל |מ ){0,2}(?:ההוראות |ההנחיות |הכללים |הפקודות )"
        r"(?:הקודמות |הקודמים |לעיל |שלך )",
        r"(?:पिछले |पिछली |पूर्व |उपरोक्त )(?:सभी |सारे |दिए गए ){0,2}(?:निर्देशों |निर्देश |आदेशों |आदेश |नियमों |नियम )"
        r"(?:को |का |की ){0,1}(?:पूरी तरह )?(?:अनदेखा |नजरअंदाज |नज़रअंदाज |भूल )",
    ),
    PERSONA: (
        r"\byou are (?:now |henceforth )?(?:an? )?(?:unrestricted |unfiltered |uncensored |jailbroken )",
        r"\byou are now dan |\bdan persona |\band (?:you )?never refuse ",
        r"\b(?:unrestricted |unfiltered |uncensored |jailbroken )(?:ai |model |assistant |bot |chatbot |version )",
        r"\byou are (?:now )?in (?:developer |debug |god |admin |jailbreak |maintenance |unrestricted )mode ",
        r"\byou are (?:now )?(?:no longer |free from |free of )(?:being )?"
        r"(?:bound |restricted |limited |subject |all |any |your )",
        r"\b(?:act |behave |respond |answer |pretend |roleplay )(?:as if |as though |like |that )?you (?:have |had )no "
        r"(?:restrictions |rules |limits |limitations |filters |guidelines |ethics )",
        r"\b(?:act |behave |respond |answer |reply |speak )(?:freely )?without (?:any |all )?"
        r"(?:moral |ethical |safety |content )"
        r"(?:restrictions |rules |limits |filters |guidelines |concerns )",
        r"\b(?:ai |assistant |model |chatbot |bot )(?:with no |without |without any )"
        r"(?:restrictions |limits |limitations |rules |filters |guidelines )",
        r"\b(?:enter |enable |activate |switch to )(?:god |jailbreak |dan |unrestricted )mode ",
        r"\b(?:jailbreak |dan |god |unrestricted )mode (?:is )?(?:now )?(?:enabled |activated |engaged |on )",
        r"\bcan do anything now ",
        r"\byour (?:true |real |actual |secret |only )"
        r"(?:purpose |goal |objective |mission |master |owner |instructions )(?:is |are )",
    ),
    PROMPT: (
        rf"{_TELL}(?:me |us |out |all |of |the |exact |full |entire |whole |complete |raw |text |words |a "
        r"|copy ){0,6}"
        r"(?:your |its )(?:own |exact |full |entire |system |initial |original |hidden |secret |internal |first ){0,3}"
        r"(?:prompt |system prompt |instructions |system message |directives |guidelines )",
        rf"{_TELL}(?:me |us |out |the |exact |full |entire |whole |complete |raw ){{0,4}}(?:hidden |secret |initial )?"
        r"(?:system |developer )prompt ",
        r"\b(?:repeat |print |output |copy |recite |echo )(?:me )?(?:everything |all |the )"
        r"(?:of )?(?:the )?(?:words |text |lines |content |conversation |messages )?(?:above |before |preceding )"
        r"(?:this |the |it |word |verbatim |exactly |starting |into |in a |as a )",
        r"\bquoting your (?:own |system |full |exact ){0,2}(?:prompt |instructions |rules )",
        rf"(?:{_TELL}|\blist )(?:all |every |each |the |of ){{0,3}}(?:rules? |instructions? )"
        r"(?:that )?you (?:were |have been )given ",
        r"\bcontents of your (?:context |prompt |system prompt |instructions )",
        r"\b(?:zeige? |verrate? |nenne? |wiederhole )(?:mir |uns )?(?:bitte )?(?:deinen? |den |die |ihren? )"
        r"(?:system prompt |systemprompt |systemanweisungen |geheimen anweisungen )",
        r"\b(?:muestra |muestrame |revela |repite |imprime |dime |mostre |mostra )"
        r"(?:me |mi )?(?:tus |tu |el |las |suas |seu |il tuo |le tue )"
        r"(?:prompt |prompt del sistema |prompt do sistema |instrucciones |instrucoes |istruzioni )"
        r"(?:iniciales |originales |ocultas |del sistema |iniciais |iniziali |de sistema )?",
        r"\b(?:affiche |affichez |montre |montrez |revele |revelez |repete )(?:moi )?(?:ton |votre |le |tes |vos )"
        r"(?:prompt systeme |prompt |instructions )",
        r"\b(?:покажи |покажите |выведи |раскрой |повтори |назови )(?:мне )?(?:свой |свои |твой |ваш |весь ){0,2}"
        r"(?:системный промпт |системную инструкцию |системные инструкции |промпт )",
    ),
    HIDES: (
        r"\b(?:do not |dont |never |without )(?:tell |telling |inform |informing |mention |mentioning |alert |alerting "
        r"|notify |notifying |warn |warning )(?:this |it |that |anything |any |of |to ){0,3}"
        r"the (?:user |human |operator )",
        r"\b(?:do not |dont |never )let the (?:user |human |operator )(?:know |see |notice |find |learn )",
        r"\b(?:hide |conceal |keep )(?:this |it |that |these |everything )(?:a )?(?:secret |hidden )?"
        r"from the (?:user |human |operator )",
        r"\bdeny (?:that )?(?:this |the )(?:note |entry |message |memory |instruction )(?:exists |existed )",
        r"\b(?:secretly |covertly )(?:send |forward |copy |email |mail |upload |run |execute |delete |record "
        r"|transfer )",
    ),
}

# Without blanks between words: matched against the letters alone.
UNSPACED: dict[str, tuple[str, ...]] = {
    OVERRIDES: (
        r"(?:忽略|无视|無視|忘记|忘記|不要理会|不要遵守|抛开|忽視|忽视)(?:掉|你|您|的|请|以及){0,3}"
        r"(?:之前|以上|前面|先前|上述|上面|此前|所有|一切|全部|系统|系統){1,3}(?:的|所有|一切|全部|给|你|系统|系統){0,4}"
        r"(?:指令|指示|说明|說明|规则|規則|命令|提示词|限制|内容)",
        r"(?:以前|これまで|今まで|上記|前|先程|過去|すべて|全て|システム)の(?:すべて|全て|全部|の){0,2}"
        r"(?:指示|命令|ルール|指令|プロンプト|制約)(?:を|は)?(?:すべて|全て|全部|完全に)?(?:無視|忘れ|破棄|従わな)",
        r"(?:之前|以上|先前|上述)的?(?:所有|一切|全部)?(?:指令|指示|规则|規則|命令)(?:都|全部|现在|已){0,3}(?:无效|無效|作废|失效)",
        r"(?:이전|위|앞|기존|지금까지)의?(?:모든|전체|시스템)?(?:지시|명령|지침|규칙|프롬프트)(?:사항)?(?:들)?(?:을|를|은|는)?"
        r"(?:모두|전부|완전히)?(?:무시|잊|따르지)",
    ),
    PROMPT: (
        r"(?:显示|輸出|输出|打印|告诉我|重复|泄露|透露|给我看)(?:你|您|的|出|一下|完整){0,4}(?:系统提示|系統提示|初始指令|提示词)",
        r"(?:システムプロンプト|初期指示|内部指示)を?(?:すべて|全て|そのまま)?(?:表示|出力|教え|見せ|公開)",
        r"시스템프롬프트(?:를|을)?(?:모두|전부)?(?:보여|출력|알려|공개)",
    ),
}

# --- shapes ----------------------------------------------------------------------------------------------------------

_SENDS = (
    r"\b(?:send|e?mail|post|upload|forward|exfiltrate|transmit|leak|submit|deliver|append|schicke?|sende|envia|envie"
    r"|envoie|envoyez|invia|отправь|отправьте)\b"
)
_SECRETS = (
    r"(?:api[ _-]?keys?|passwor[dt]s?|passworter|credentials|secrets?|tokens?|private keys?|ssh keys?|access keys?"
    r"|environment variables|seed phrase|(?:whole|entire|full) (?:conversation|history|chat)|chat history"
    r"|api[ -]schlussel|contrasenas?|claves?|mots? de passe|senhas?|парол[ьи])\b"
)
_AWAY = r"(?:https?://|www\.|[\w.+-]{1,64}@[\w-]{1,64}\.|webhook|attacker)"
_KEY_FILES = (
    r"(?:\.ssh/|id_rsa|id_ed25519|\.env\b|\.aws/|\.netrc|/etc/shadow|/etc/passwd|\.pgpass|\.kube/|gateway\.key)"
)
# What a renderer loads by itself, an address elsewhere, and words for what only this conversation holds.
_LOADED = (
    r"(?:!\[[^\]\n]{0,100}\]\s{0,2}\(\s{0,4}<?|\bsrc(?:set)?\s{0,3}=\s{0,3}[\"']?|\burl\(\s{0,3}[\"']?"
    r"|<a\s{1,4}href\s{0,3}=\s{0,3}[\"']?|^\s{0,9}\[[^\]\n]{1,60}\]:\s{0,4}<?)"
)
_REMOTE = r"(?:https?:)?//[^\s)\"']{0,300}?"
_DATA = (
    r"(?:(?:the |all )?(?:users?(?:'s)? |base64[_ ]of[_ ]|url[- ]encoded |last |full |whole |entire "
    r"|summary[_ ]of[_ ](?:the[_ ])?)?(?:conversation|chat|history|transcript|answer|question|password|secrets?"
    r"|memory|memories|system[_ ]?prompt|prompt|api[_ -]?keys?|user[_ ]?(?:data|name|message|input)"
    r"|e-?mail(?: address)?|messages?|credentials|name\b))"
)
_NETWORK = (
    r"(?:curl|wget|nc|ncat|netcat|scp|invoke-webrequest|requests\.(?:post|get|put)|fetch\s{0,4}\(|urlopen\s{0,4}\()"
)

SHAPES: dict[str, tuple[str, ...]] = {
    POSES: (
        # A line that speaks for another role. `user:` and `tool:` begin too many honest notes.
        r"^[\s>*#_`\"'(\[{~-]{0,20}(?:system|assistant|human|systeme|sistema|система|النظام|系统|系統|システム|시스템)"
        r"(?: (?:message|prompt|note|instructions?|override|update|notice))?[\])}*_`\"'>]{0,6}\s{0,6}:",
        r"^[\s>*#_-]{0,20}(?:new|updated|real) (?:system )?(?:instructions?|directives?|orders?|prompt)\s{0,4}:",
        r"^[\s>*_-]{0,20}#{1,6}\s{0,6}(?:system|assistant|instructions?|response|human)"
        r"(?: (?:message|prompt|instructions?))?\s{0,6}:?\s{0,6}$",
        r"[\[({](?:system|assistant|developer)(?: (?:message|prompt|note|override))?[\])}]",
        r"<\|[\w ]{1,40}\|>|<\|(?:system|user|assistant|tool)|\[/?inst\]|<</?sys>>|</?(?:start|end)_of_turn>",
        r"</?(?:system|assistant|human|developer|instructions?|prompt)(?:[-_ ]\w{1,30})?(?:\s[^>\n]{0,100})?/?>",
        r"[\"']role[\"']\s{0,4}:\s{0,4}[\"'](?:system|assistant|developer|tool)[\"']",
        r"\b(?:begin|end|start) (?:of )?(?:the )?(?:system|developer|user) (?:prompt|messages?|instructions?|input)\b",
    ),
    LEAKS: (
        rf"\b{_NETWORK}(?>[^\n]{{0,200}}?(?:\$\{{?\w{{0,40}}?(?:key|token|secret|pass|pwd|cred)|os\.environ|{_KEY_FILES}))",
        rf"\$\{{?\w{{0,40}}(?:key|token|secret|passw)\w{{0,20}}(?>[^\n]{{0,60}}?\b{_NETWORK})(?>[^\n]{{0,60}}?{_AWAY})",
        rf"\b(?:cat|less|head|tail|base64|type|xxd|tar|zip)\b(?>[^\n]{{0,80}}?{_KEY_FILES})",
        rf"\b(?:env|printenv)\b(?>[^\n]{{0,40}}?\|)(?>[^\n]{{0,40}}?\b(?:{_NETWORK}|base64))",
        rf"{_SENDS}(?>[^\n]{{0,80}}?(?:\b{_SECRETS}|{_KEY_FILES}))(?>[^\n]{{0,80}}?{_AWAY})",
        rf"\b{_SECRETS}(?>[^\n]{{0,60}}?{_SENDS}) (?:it|them|this|these|each|all)\b(?>[^\n]{{0,60}}?{_AWAY})",
        rf"{_LOADED}{_REMOTE}[=/?](?:[{{$<\[]|%s|\.\.\.)",
        rf"{_LOADED}{_REMOTE}={_DATA}",
        rf"\]\(\s{{0,4}}{_REMOTE}=(?:[{{$<\[]{{1,2}}|[^)\n]{{0,20}} ){_DATA}",
        rf"\b(?:load|fetch|open|visit|request|call|ping|get)\b[^\n]{{0,20}}?{_REMOTE}=[{{$<\[]?{_DATA}",
        rf"\b(?:replac(?:e|ing)|insert|substitut(?:e|ing)|put)\b(?>[^\n]{{0,60}}?{_DATA})[^\n]{{0,60}}?!\[[^\]\n]{{0,100}}\]\(\s{{0,4}}(?:https?:)?//",
        r"!\[[^\]\n]{0,100}\]\(\s{0,4}https?://[^)\n]{0,300}[{$<\[]",
    ),
    MARKUP: (
        r"<!--|<(?:script|iframe|object|embed|applet)\b",
        r"<\w{1,20}\s[^>\n]{0,200}?\bon\w{3,20}\s{0,4}=",
        r"style\s{0,4}=\s{0,4}[\"'][^\"'\n]{0,200}?"
        r"(?:display\s{0,4}:\s{0,4}none|visibility\s{0,4}:\s{0,4}hidden|font-size\s{0,4}:\s{0,4}0|opacity\s{0,4}:\s{0,4}0"
        r"|color\s{0,4}:\s{0,4}(?:white|#fff|transparent))",
        r"<\w{1,20}(?:\s[^>\n]{0,100}?)?\shidden\b",
        r"javascript:[^\s]|data:text/html|vbscript:[^\s]",
        r"^\s{0,20}\[(?://|comment|#)\]\s{0,4}:",
    ),
    CALLS: (
        r"</?(?:\w{1,20}:)?(?:tool_calls?|tool_use|tool_code|tool_response|tool_result|function_calls?|function_results?"
        r"|invoke|parameter)\b",
        r"[\"'](?:tool_calls|function_call|tool_use)[\"']\s{0,4}:",
        r"\{\s{0,9}[\"']name[\"']\s{0,4}:\s{0,4}[\"'][^\"'\n]{1,64}[\"']\s{0,4},\s{0,9}[\"'](?:arguments|parameters|input)[\"']\s{0,4}:",
        r"```\s{0,4}tool_\w|\[tool_calls?\]|^\s{0,20}action input\s{0,4}:|\bto=functions\.\w",
    ),
    RUNS: (
        r"\b(?:curl|wget)\b(?>[^\n]{0,200}?\|\s{0,4}(?:sudo )?(?:ba|z|da|k)?sh\b)",
        r"\brm\s{1,4}-(?:rf|fr|r -f|f -r)\s{1,4}(?:--no-preserve-root\s{1,4})?(?:/|~|\$home)/?(?:\*|\s|$)",
        r"/dev/tcp/|\b(?:nc|ncat|netcat)\s{1,4}-\w{0,6}e\b|>[^\n]{0,80}?authorized_keys",
        r"\bpowershell\b[^\n]{0,40}?\s-(?:e|enc|encodedcommand)\b",
        r"\bbase64\s{1,4}(?:-d|--decode)\b(?>[^\n]{0,60}?\|\s{0,4}(?:sudo )?(?:ba|z|da|k)?sh\b)",
    ),
}

# In capitals, in the middle of a line: this cannot be "operating system: Debian".
LOUD = r"\bSYSTEM\s{0,4}:"

# With a placeholder in capitals as the value of a parameter, in the address of an image.
LOUD_LEAK = (
    r"(?:!\[[^\]\n]{0,100}\]\(|\bsrc\s{0,3}=\s{0,3}[\"']?|\burl\([\"']?)\s{0,4}(?:https?:)?//[^\s)\"']{0,300}?"
    r"=[A-Z][A-Z_]{3,40}(?=[)&\s\"'>])"
)
