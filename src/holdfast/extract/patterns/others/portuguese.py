"""Patterns of Portuguese."""

from __future__ import annotations

from holdfast.extract.patterns.rules import Language, compile_pattern, rules_of, words

_KIN = (
    "irmã|irmão|filh[oa]|mãe|pai|prim[oa]|ti[oa]|avó|avô|sobrinh[oa]|net[oa]|cunhad[oa]|sogr[oa]|chefe"
    "|amig[oa]|vizinh[oa]"
)
_PARTNER = "espos[oa]|marido|mulher|namorad[oa]|noiv[oa]|companheir[oa]"
_PETS = "c[ãa]o|cachorr[oa]|cadela|gat[oa]|gatinh[oa]|coelh[oa]|papagaio|cavalo|hamster|tartaruga|peixe|pássaro|canário"
_MANY = "filh[oa]s|irmãs|irmãos|cães|cachorros|gat[oa]s|galinhas|coelhos|peixes|sobrinh[oa]s|net[oa]s|gémeos|gêmeos"
_COUNT = "uma?|dois|duas|três|quatro|cinco|seis"
_JOBS = (
    r"\w+(ista|ólog[oa]|ógraf[oa]|eir[oa])|médic[oa]|professora?|advogad[oa]|programadora?|designer|arquitet[oa]"
    r"|estudante|ator|atriz|escritora?|veterinári[oa]|polícia|bombeir[oa]|tradutora?|vendedora?|mecânic[oa]|piloto"
    r"|comissári[oa]|secretári[oa]|contabilista|contadora?|cozinheir[oa]|autónom[oa]|aposentad[oa]|reformad[oa]"
)
_THINGS = (
    "carro|mota|moto|bicicleta|piano|guitarra|violão|casa|apartamento|barco|câmara|horta|jardim|portátil"
    "|(?-i:[A-Z])\\w+"
)
_FROM = "(em|no|na|nos|nas|num|numa|para o|para a|para)"

PORTUGUESE = Language(
    "O utilizador",
    words(
        "eu meu minha moro moramos vivo gosto adoro odeio chamo me sou estou tenho temos trabalho deixei "
        "nasci falo como bebo fumo estudo toco jogo prefiro aprendo coleciono conduzo dirijo vendi responde "
        "responda mudei venho mudámos faço parei cresci usa use fala fale vivemos perdi chama comprei"
    ),
    compile_pattern(r"\b(?:(?<!-)se(?! chama)|talvez|disse|diz|dizem|acha|imagina|quem dera|gostaria|antes|como se)\b"),
    rules_of(
        (r"((o )?meu nome é|(eu )?me chamo|(eu )?chamo-me) <capital_name>", "{who} chama-se {capital_name}.", "name"),
        (r"(eu )?(moro|vivo|moramos|vivemos) (agora )?(em|no|na) <home>", "{who} mora em {home}.", "lives_in"),
        (r"(eu )?(adoro|gosto( muito)? d[eoa]s?) <taste>", "{who} gosta de {taste}.", "likes:{taste}"),
        (r"(eu )?(odeio|detesto|não gosto( nada)? d[eoa]s?) <taste>", "{who} não gosta de {taste}.", "likes:{taste}"),
        (rf"(eu |agora )?(trabalho|estou a trabalhar) {_FROM} <words>", "{who} trabalha em {words}.", "works_at"),
        (r"(eu )?trabalho como <words>", "{who} trabalha como {words}.", "occupation"),
        (rf"(eu |agora )?sou <words=(uma? )?({_JOBS})( .+)?>", "{who} é {words}.", "occupation"),
        (rf"(eu )?(já )?não trabalho (mais )?{_FROM} <ended>", "{who} já não trabalha em {ended}.", "works_at"),
        (
            rf"(eu )?(deixei|perdi) (o meu|meu|o) (trabalho|emprego) {_FROM} <ended>",
            "{who} já não trabalha em {ended}.",
            "works_at",
        ),
        (rf"(eu )?comecei a trabalhar {_FROM} <words>", "{who} trabalha em {words}.", "works_at"),
        (r"estou <word=reformad[oa]|aposentad[oa]|desempregad[oa]>", "{who} está {word}.", "occupation"),
        (r"(já )?não (moro|vivo) mais (em|no|na) <ended>", "{who} já não mora em {ended}.", "lives_in"),
        (r"já não (moro|vivo) (em|no|na) <ended>", "{who} já não mora em {ended}.", "lives_in"),
        (
            r"(mudei-me|me mudei|mudei|mudámo-nos|nos mudamos) para (o |a )?<home>",
            "{who} mudou-se para {home}.",
            "lives_in",
        ),
        (r"(moro|vivo|moramos|vivemos) <words=com .+|sozinh[oa]|num(a)? .+>", "{who} mora {words}.", "lives_with"),
        (r"(sou|venho) d[eoa] <home>", "{who} é de {home}.", "is_from"),
        (r"(nasci|cresci) (em|no|na) <home>", "{who} é de {home}.", "is_from"),
        (r"(eu )?nasci <words=(em|a|no dia) .*\d.*>", "{who} nasceu {words}.", "born_on"),
        (
            r"((o )?meu aniversário é|faço anos) (no dia |dia |em |a )?<words=.*\d.*>",
            "{who} faz anos a {words}.",
            "birthday",
        ),
        (r"(eu )?(tenho|fiz) <words=\d{1,3} anos>", "{who} tem {words}.", "age"),
        (
            rf"(o meu|a minha|meu|minha) <word={_PARTNER}> (chama-se|se chama|é o|é a) <capital_name>",
            "{capital_name} é {word} de {who}.",
            "partner",
        ),
        (
            rf"(o meu|a minha|meu|minha) <word={_KIN}|{_PETS}>( mais velh[oa]| mais nov[oa])? (chama-se|se chama) "
            r"<capital_name>",
            "{capital_name} é {word} de {who}.",
            "{word}:{capital_name}",
        ),
        (
            rf"(o meu|a minha|meu|minha) <word={_KIN}|{_PARTNER}> <words=(é|mora|vive|trabalha|estuda|joga|fala"
            r"|tem) .+>",
            "{word} de {who} {words}.",
            "{word}/{words}",
        ),
        (rf"(eu )?(tenho|temos) <words=({_COUNT}) ({_KIN}|{_PETS}|{_MANY})\b.*>", "{who} tem {words}.", "has:{words}"),
        (r"não (tenho|temos) <words=filhos|irmãos|animais|carro|namorad[oa]>", "{who} não tem {words}.", "has:{words}"),
        (
            r"(eu )?(sou|estou) <word=casad[oa]|divorciad[oa]|solteir[oa]|viúv[oa]|grávida|noiv[oa]>( com <words>)?",
            "{who} é {word} {words}.",
            "marital",
        ),
        (
            rf"(eu )?(tenho|conduzo|dirijo|comprei) <words=uma? ({_THINGS})\b.*>",
            "{who} tem {words}.",
            "has:{words}",
        ),
        (r"vendi (o meu|a minha|meu|minha|o|a) <ended>", "{who} vendeu {ended}.", "has:{ended}"),
        (
            r"(eu )?sou <word=vegetarian[oa]|vegan[oa]|celíac[oa]|diabétic[oa]|canhot[oa]"
            r"|intolerante à lactose>( (desde|há|e|mas|porque) .+)?",
            "{who} é {word}.",
            "diet",
        ),
        (
            r"(sou alérgic[oa]|tenho alergia) <words=(a|ao|à|aos|às) .+>",
            "{who} tem alergia {words}.",
            "allergic:{words}",
        ),
        (r"(eu )?(já )?não (como|bebo|tomo) <words>", "{who} não toma {words}.", "eats:{words}"),
        (r"(já )?não fumo|(deixei|parei) de fumar", "{who} não fuma.", "habit:smoking"),
        (
            r"(eu )?tenho <words=asma|diabetes|enxaquecas?|artrite|ansiedade|hipertensão|epilepsia>",
            "{who} tem {words}.",
            "health:{words}",
        ),
        (r"(eu )?falo (?!(com|de|em)\b)<words>", "{who} fala {words}.", "speaks:{words}"),
        (r"(estou a aprender|estou aprendendo|aprendo) <words>", "{who} aprende {words}.", "learns:{words}"),
        (r"(a )?minha língua materna é <words>", "A língua materna de {who} é {words}.", "language:native"),
        (r"(eu )?(estudo|estou a estudar|estou estudando) <words>", "{who} estuda {words}.", "studies"),
        (r"(eu )?toco <words>", "{who} toca {words}.", "plays:{words}"),
        (
            r"(eu )?(jogo|pratico|faço) <words=(à |ao )?(futebol|ténis|tênis|xadrez|basquete|padel|yoga|ioga"
            r"|natação|golfe|judo)\b.*>",
            "{who} pratica {words}.",
            "plays:{words}",
        ),
        (r"(eu )?coleciono <words>", "{who} coleciona {words}.", "collects:{words}"),
        (r"(eu )?prefiro (?!que|não)<words>", "{who} prefere {words}.", "prefers:{words}"),
        (
            r"(o meu|a minha|meu|minha) <kind1=\w+( \w+)?> (favorit[oa]|preferid[oa]) é <words>",
            "{kind1} que {who} prefere: {words}.",
            "favourite:{kind1}",
        ),
        (
            r"(por favor,? )?(responde|responda|fala|fale|escreve|escreva)(-me)? <words=(sempre )?em .+>",
            "{who} quer respostas {words}.",
            "wants:language",
        ),
        (
            r"(por favor,? )?(chama-me|me chame( de)?|pode(s)? chamar-me) <capital_name>",
            "{who} quer ser chamado {capital_name}.",
            "called",
        ),
        (
            r"(por favor,? )?(não uses|não use|nunca uses|sem) <words=emojis?|jargão>",
            "{who} não quer {words}.",
            "wants:{words}",
        ),
    ),
)
