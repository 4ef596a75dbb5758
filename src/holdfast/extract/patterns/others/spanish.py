"""Patterns of Spanish."""

from __future__ import annotations

from holdfast.extract.patterns.rules import Language, compile_pattern, rules_of, words

_KIN = (
    "(herman|hij|prim|tí|abuel|sobrin|niet|cuñad|suegr|amig|vecin)[oa]|madre|padre|mamá|papá|jef[ea]|mejor amig[oa]"
    "|compañer[oa] de (piso|trabajo)"
)
_PARTNER = "espos[oa]|marido|mujer|novi[oa]|pareja|prometid[oa]"
_PETS = (
    "perr[oa]|perrit[oa]|gat[oa]|gatit[oa]|conej[oa]|loro|caballo|yegua|hámster|tortuga|pez|pájaro|canario|cachorr[oa]"
)
_MANY = "hij[oa]s|herman[oa]s|perr[oa]s|gat[oa]s|gallinas|conejos|peces|sobrin[oa]s|niet[oa]s|gemel[oa]s|mellizos"
_COUNT = "una?|dos|tres|cuatro|cinco|seis|un par de"
_MONTH = "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
_JOBS = (
    r"\w+(ista|ólog[oa]|ógraf[oa]|ier[oa]|ctriz)|médic[oa]|profesora?|maestr[oa]|abogad[oa]|camarer[oa]|programadora?"
    r"|diseñadora?|arquitect[oa]|estudiante|conductora?|actor|escritora?|autónom[oa]|veterinari[oa]|funcionari[oa]"
    r"|contable|policía|bomber[oa]|albañil|traductora?|vendedora?|carpinter[oa]|mecánic[oa]|peluquer[oa]|fontaner[oa]"
    r"|bibliotecari[oa]|piloto|secretari[oa]|desarrolladora?|cociner[oa]|panader[oa]|enfermer[oa]|ingenier[oa]"
)
_THINGS = (
    r"coche|carro|moto|bici|bicicleta|piano|guitarra|casa|piso|huerto|jardín|barco|cámara|portátil|furgoneta|móvil"
    r"|violín|(?-i:[A-Z])\w+"
)

SPANISH = Language(
    "El usuario",
    words(
        "me mi yo nuestra nuestro vivo vivimos odio soy estoy tengo tenemos trabajo dejé nací cumplo cumplí "
        "hablo como bebo tomo fumo estudio toco juego prefiero aprendo colecciono conduzco vendí responde "
        "contesta llámame habla háblame trátame sin voy vamos corro nos vengo perdí uses"
    ),
    compile_pattern(r"\b(?:si|ojalá|quizás?|tal vez|dijo|dice|dicen|cree|imagina|como si|gustaría|antes|no sé)\b"),
    rules_of(
        (r"(me llamo|mi nombre es) <capital_name>", "El nombre de {who} es {capital_name}.", "name"),
        (r"(yo vivo|vivo|vivimos) (ahora )?en <home>", "{who} vive en {home}.", "lives_in"),
        (
            r"(a mí )?me (gusta|gustan|encanta|encantan)( mucho| muchísimo)? <taste>",
            "A {who} le gusta {taste}.",
            "likes:{taste}",
        ),
        (
            r"(a mí )?(no me (gusta|gustan)( nada)?|odio|detesto) <taste>",
            "A {who} no le gusta {taste}.",
            "likes:{taste}",
        ),
        # work
        (
            r"(ahora |yo )?(trabajo|estoy trabajando) (ahora )?(en|para) <words>",
            "{who} trabaja en {words}.",
            "works_at",
        ),
        (r"(ahora )?trabajo (como|de) <words>", "{who} trabaja como {words}.", "occupation"),
        (rf"(ahora |yo )?soy <words=(una? )?({_JOBS})( .+)?>", "{who} es {words}.", "occupation"),
        (r"(ya )?no trabajo (más )?en <ended>", "{who} ya no trabaja en {ended}.", "works_at"),
        (
            r"(dejé|he dejado|perdí|he perdido|renuncié a) (mi|el) (trabajo|empleo|puesto) en <ended>",
            "{who} dejó su trabajo en {ended}.",
            "works_at",
        ),
        (r"(he empezado|empecé|acabo de empezar) a trabajar en <words>", "{who} trabaja en {words}.", "works_at"),
        (r"estoy <word=jubilad[oa]|en paro|desemplead[oa]>", "{who} está {word}.", "occupation"),
        # home
        (r"(ya )?no vivo (más )?en <ended>", "{who} ya no vive en {ended}.", "lives_in"),
        (r"(me mudé|me he mudado|nos mudamos|nos hemos mudado) a <home>", "{who} se mudó a {home}.", "lives_in"),
        (r"(vivo|vivimos) <words=con .+|sol[oa]|en una? .+>", "{who} vive {words}.", "lives_with"),
        (r"(soy|vengo) de <home>", "{who} es de {home}.", "is_from"),
        (r"(nací|crecí) en <home>", "{who} es de {home}.", "is_from"),
        # age and birthday
        (r"nací <words=(en|el) .*\d.*>", "{who} nació {words}.", "born_on"),
        (
            r"(mi cumpleaños es|cumplo años) (el )?<words=\d.*|.* de \w+>",
            "El cumpleaños de {who} es el {words}.",
            "birthday",
        ),
        (r"(tengo|he cumplido|cumplí) <words=\d{1,3} años>", "{who} tiene {words}.", "age"),
        # people and animals
        (
            rf"(mi|nuestr[oa]) <word={_PARTNER}> (se llama|es) <capital_name>",
            "{capital_name} es {word} de {who}.",
            "partner",
        ),
        (
            rf"(mi|nuestr[oa]) <word={_KIN}|{_PETS}>( mayor| menor)? se llama <capital_name>",
            "{capital_name} es {word} de {who}.",
            "{word}:{capital_name}",
        ),
        (
            rf"mi <word={_KIN}|{_PARTNER}> <words=(es|vive|trabaja|estudia|juega|habla|tiene) .+>",
            "{word} de {who} {words}.",
            "{word}/{words}",
        ),
        (rf"(tengo|tenemos) <words=({_COUNT}) ({_KIN}|{_PETS}|{_MANY})\b.*>", "{who} tiene {words}.", "has:{words}"),
        (
            rf"(?P<verbatim>tengo|tenemos) <words=({_COUNT}) ({_MANY})>, <names>",
            "{who} tiene {words}, {names}.",
            "has:{words}",
        ),
        (
            r"no (tengo|tenemos) <words=hijos|hermanos|mascotas|coche|carro|pareja|perro|gato>",
            "{who} no tiene {words}.",
            "has:{words}",
        ),
        (
            r"(ahora )?(estoy|soy) <word=casad[oa]|divorciad[oa]|solter[oa]|viud[oa]|embarazada|separad[oa]>( con "
            r"<words>)?",
            "{who} está {word} {words}.",
            "marital",
        ),
        # things
        (
            rf"(tengo|conduzco|manejo|me he comprado|me compré|compré) <words=una? ({_THINGS})\b.*>",
            "{who} tiene {words}.",
            "has:{words}",
        ),
        (r"(vendí|he vendido) (mi|el|la) <ended>", "{who} vendió {ended}.", "has:{ended}"),
        # diet and health
        (
            r"(yo )?soy <word=vegetarian[oa]|vegan[oa]|celíac[oa]|diabétic[oa]|zurd[oa]"
            r"|intolerante a la lactosa>( (desde|y|pero|porque) .+)?",
            "{who} es {word}.",
            "diet",
        ),
        (r"(soy alérgic[oa]|tengo alergia) <words=(a|al) .+>", "{who} tiene alergia {words}.", "allergic:{words}"),
        (r"(ya )?no (como|bebo|tomo) <words>", "{who} no toma {words}.", "eats:{words}"),
        (r"(ya )?no fumo|he dejado de fumar|dejé de fumar", "{who} no fuma.", "habit:smoking"),
        (
            r"tengo <words=asma|diabetes|migrañas?|artritis|ansiedad|hipertensión|epilepsia|la tensión alta>",
            "{who} tiene {words}.",
            "health:{words}",
        ),
        # languages, studies, hobbies
        (r"(yo )?hablo (?!(con|de|en)\b)<words>", "{who} habla {words}.", "speaks:{words}"),
        (r"(estoy aprendiendo|aprendo) <words>", "{who} aprende {words}.", "learns:{words}"),
        (r"mi (lengua materna|idioma materno) es <words>", "La lengua materna de {who} es {words}.", "language:native"),
        (r"(estudio|estoy estudiando) <words>", "{who} estudia {words}.", "studies"),
        (r"toco <words=(el|la|los) .+>", "{who} toca {words}.", "plays:{words}"),
        (
            r"(juego|practico|hago) <words=(a |al )?(fútbol|tenis|ajedrez|baloncesto|pádel|yoga|natación|golf"
            r"|judo)\b.*>",
            "{who} practica {words}.",
            "plays:{words}",
        ),
        (r"colecciono <words>", "{who} colecciona {words}.", "collects:{words}"),
        (r"prefiero (?!que|no)<words>", "{who} prefiere {words}.", "prefers:{words}"),
        (
            r"mi <kind1=\w+( \w+)?> (favorit[oa]|preferid[oa]) es <words>",
            "{kind1} que prefiere {who}: {words}.",
            "favourite:{kind1}",
        ),
        # requests
        (
            r"(por favor,? )?(responde|contesta|respóndeme|contéstame|háblame|escríbeme|habla) <words=(siempre "
            r")?en .+>",
            "{who} quiere respuestas {words}.",
            "wants:language",
        ),
        (
            r"(por favor,? )?(llámame|puedes llamarme) <capital_name>",
            "{who} quiere que le llamen {capital_name}.",
            "called",
        ),
        (
            r"(por favor,? )?(no uses|nunca uses|sin|deja de usar) <words=emojis?|emoticonos|tecnicismos|jerga>",
            "{who} no quiere {words}.",
            "wants:{words}",
        ),
        (r"(por favor,? )?trátame de <word=tú|usted|vos>", "{who} quiere trato de {word}.", "wants:address"),
        # plans
        (
            r"mi <word=vuelo|boda|examen|cita|entrevista|operación|cirugía|viaje|mudanza> (es|será|sale) "
            rf"<words=(el|en) .*(\d|{_MONTH}).*>",
            "{word} de {who} es {words}.",
            "occasion:{word}",
        ),
    ),
)
