"""Closed lists of English words that the patterns need: relations, animals, professions, things, illnesses, tongues."""

from __future__ import annotations

# One person may have many of these, so the name is part of the slot.
MANY_RELATIVES = (
    "twin brother|twin sister|half-brother|half-sister|sister|brother|son|daughter|friend|best friend"
    "|cousin|aunt|uncle|niece|nephew|colleague"
    "|coworker|co-worker|neighbor|neighbour|roommate|flatmate|housemate|classmate|teammate|grandson|granddaughter"
    "|child|kid|baby|toddler|grandchild|student|stepson|stepdaughter|stepbrother|stepsister|sister-in-law"
    "|brother-in-law|son-in-law|daughter-in-law|godson|goddaughter|godchild"
)
ONE_RELATIVE = (
    "ex-husband|ex-wife|ex-boyfriend|ex-girlfriend|mother|mom|mum|mama|father|dad|boss|manager"
    "|grandmother|grandma|granny|gran|grandfather|grandpa|granddad|therapist"
    "|dentist|doctor|mother-in-law|father-in-law|stepmother|stepfather|stepmom|stepdad|landlord|landlady|supervisor"
    "|coach|team lead|godmother|godfather"
)
PARTNERS = "wife|husband|spouse|girlfriend|boyfriend|partner|fiancé|fiancée|fiance|fiancee"
RELATIVES_TOGETHER = (
    "parents|kids|children|grandparents|grandchildren|siblings|twins|in-laws|sons|daughters|sisters|brothers|boys|girls"
    "|nephews|nieces|cousins|grandkids|stepchildren|stepkids"
)
PETS = (
    "dog|puppy|pup|cat|kitten|parrot|hamster|rabbit|bunny|horse|pony|turtle|tortoise|goldfish|fish|canary|budgie"
    "|parakeet|cockatiel|guinea pig|ferret|gerbil|rat|mouse|snake|python|lizard|gecko|iguana|hen|chicken|rooster|duck"
    "|goose|goat|sheep|donkey|pig|hedgehog|chinchilla|bird|labrador|lab|golden retriever|retriever|poodle|beagle"
    "|border collie|collie|greyhound|whippet|dachshund|husky|terrier|bulldog|corgi|pug|boxer|spaniel|cocker spaniel"
    "|german shepherd|shepherd|dalmatian|chihuahua|rottweiler|mutt|mare|foal|stallion|tabby|siamese|persian|maine coon"
    "|cockapoo|labradoodle|pet"
)
PETS_TOGETHER = (
    "dogs|puppies|cats|kittens|parrots|hamsters|rabbits|bunnies|horses|ponies|turtles|tortoises|goldfish|fish|canaries"
    "|budgies|guinea pigs|ferrets|gerbils|rats|mice|snakes|lizards|geckos|hens|chickens|roosters|ducks|geese|goats"
    "|sheep|donkeys|pigs|birds|bees|alpacas|labradors|beagles|greyhounds|pets"
)
SAME_RELATION = {
    "mom": "mother",
    "mum": "mother",
    "mama": "mother",
    "dad": "father",
    "fiance": "fiancé",
    "fiancee": "fiancée",
    "grandma": "grandmother",
    "granny": "grandmother",
    "gran": "grandmother",
    "grandpa": "grandfather",
    "granddad": "grandfather",
    "co-worker": "coworker",
    "neighbour": "neighbor",
    "stepmom": "stepmother",
    "stepdad": "stepfather",
}
WHICH = (
    r"(?:(?:older|younger|little|big|elder|eldest|oldest|youngest|middle|second|first|only|lovely|dear|dearest"
    r"|new|old|late|baby|foster|adopted|rescue|beloved|sweet)[ -]){0,2}"
)
COUNTS = (
    "a|an|one|two|three|four|five|six|seven|eight|nine|ten|twelve|some|several|a couple of|a few|over "
    "\\d+|about \\d+|\\d{1,2}"
)

PROFESSIONS = (
    "nurse|doctor|teacher|engineer|lawyer|attorney|judge|programmer|developer|coder|architect|designer|accountant"
    "|bookkeeper|auditor|chef|cook|waiter|waitress|bartender|baker|butcher|barista|electrician|plumber|carpenter|joiner"
    "|mechanic|roofer|painter|builder|bricklayer|firefighter|fireman|paramedic|pilot|sailor|captain|journalist|reporter"
    "|writer|author|novelist|poet|editor|copywriter|translator|interpreter|musician|singer|composer|conductor|dj|actor"
    "|actress|dancer|comedian|photographer|filmmaker|director|producer|illustrator|animator|artist|sculptor|potter"
    "|scientist|researcher|mathematician|surgeon|gp|veterinarian|vet|librarian|professor|lecturer|tutor|instructor"
    "|coach|trainer|personal trainer|salesperson|salesman|saleswoman|shop assistant|cashier|clerk|manager|consultant"
    "|analyst|banker|broker|trader|realtor|estate agent|insurance agent|farmer|gardener|landscaper|forester|fisherman"
    "|beekeeper|driver|trucker|courier|hairdresser|barber|beautician|tailor|seamstress|soldier|officer|student"
    "|phd student|postdoc|assistant|pa|secretary|receptionist|social worker|caseworker|carer|caregiver|nanny|au pair"
    "|childminder|midwife|doula|statistician|recruiter|flight attendant|police officer|policeman|policewoman|detective"
    "|sysadmin|administrator|technician|welder|machinist|operator|freelancer|contractor|entrepreneur|founder|co-founder"
    "|ceo|cto|cfo|cook|cleaner|janitor|caretaker|housekeeper|porter|postman|mail carrier|bus driver|taxi driver"
    "|truck driver|priest|pastor|imam|rabbi|monk|nun|politician|civil servant|diplomat|planner|surveyor|inspector"
    "|supervisor|foreman|team lead|lead|head teacher|principal|counsellor|counselor|advisor|adviser|guide|intern"
    "|apprentice|trainee|volunteer|homemaker|housewife|stay-at-home (?:mom|mum|dad|parent)|landlord|landlady|streamer"
    "|youtuber|blogger|tester|scrum master|sommelier|brewer|jeweller|watchmaker|tattooist|masseuse|undertaker|bouncer"
    "|security guard|lifeguard|ranger|zookeeper|paralegal|solicitor|barrister|notary|optician|radiographer|nutritionist"
    r"|\w{3,}(?:ologist|ographer|ician|smith|therapist|iatrist|macist|nomist|nalist|rapher)"
    r"|\w{2,}(?:ntist|hysicist|emist|orist)"
)
# Before a profession, these words say that it is none.
NOT_PROFESSIONAL = (
    "good|bad|terrible|horrible|great|awful|lousy|decent|slow|fast|nervous|big|huge|total|little|real|fellow|mere"
    "|would-be|aspiring|wannabe|bit|of|kind|sort|wonderful|amazing|better|worse|fan|excellent|poor|keen|careful"
)
BUSINESSES = (
    "shop|store|bakery|hostel|hotel|guesthouse|restaurant|café|cafe|coffee shop|company|business|startup|start-up|bar"
    "|pub|salon|studio|farm|agency|firm|gallery|garage|practice|brewery|school|clinic|bookshop|bookstore|boutique"
    "|stall|food truck|blog|podcast|channel|youtube channel|foundation|charity|workshop|nursery|winery|vineyard|gym"
    "|newsletter|bike shop|b&b|consultancy|theatre|club|kiosk|pharmacy|law firm|dental practice|delivery service"
)
THINGS = (
    "car|van|truck|pickup|camper|campervan|motorhome|caravan|motorbike|motorcycle|scooter|moped|vespa|bike|bicycle"
    "|e-bike|ebike|cargo bike|road bike|mountain bike|boat|sailboat|kayak|canoe|surfboard|skateboard|house"
    "|flat(?! tire| tyre)"
    "|apartment|condo|cabin|cottage|garden|allotment|balcony|phone|smartphone|mobile|laptop|computer|pc|desktop|tablet"
    "|ipad|iphone|macbook|mac|kindle|e-reader|smartwatch|watch|tv|television|camera|printer|3d printer|drone|console"
    "|playstation|xbox|nintendo switch|switch|guitar|bass|piano|keyboard|violin|viola|cello|trumpet|trombone|saxophone"
    "|clarinet|flute|drums|drum kit|ukulele|banjo|harp|accordion|synthesizer|record player|turntable|telescope"
    "|sewing machine|espresso machine|coffee machine|air fryer|oven|grill|dishwasher|washing machine|bread machine"
    "|tent|bookshelf|sofa|desk|bed|fridge|freezer|greenhouse|sauna|pool|hot tub|treadmill|rowing machine|headphones"
    "|airpods|earbuds|monitor|licence|license|driving licence|driver's license"
    "|driving license|passport|tattoo|piercing|subscription|membership|library card|gym membership|wheelchair"
)
# Of these a person usually has one, so that a later one takes its place.
ONE_THING = "car|phone|mobile|laptop|computer|pc|bike|bicycle|camera|tablet|watch|motorbike|motorcycle|van|guitar|tv"
MAKES = r"(?-i:[A-Z])\w+"
ILLNESSES = (
    r"asthma|diabetes|(?:type (?:1|2|one|two) )diabetes|adhd|add|autism|ocd|ptsd|epilepsy|migraines?|arthritis|eczema"
    r"|psoriasis|anxiety|depression|insomnia|tinnitus|vertigo|anemia|anaemia|hay ?fever|celiac|coeliac|dyslexia"
    r"|dyscalculia|scoliosis|sciatica|ibs|pcos|endometriosis|glaucoma|gout|lupus|rosacea|hypertension|asperger's|ms"
    r"|rheumatism|parkinson's|crohn's|sleep apnea|sleep apnoea|reflux|acid reflux|high blood pressure"
    r"|low blood pressure|high cholesterol|cancer|a pacemaker|a hearing aid|hearing aids|flat feet|long covid"
    r"|an? (?:bad|weak|dodgy|sensitive|slipped|herniated|prosthetic|artificial|injured|broken|torn) "
    r"(?:back|knee|hip|heart|shoulder|stomach|leg|arm|hand|wrist|ankle|foot|neck|ear|eye|lung|kidney|disc|tooth|skin)"
    r"|an? (?:heart|thyroid|chronic|skin|kidney|autoimmune) [\w ]{3,30}"
    r"|bad (?:knees|eyesight|hearing)|\w+(?:itis|osis|emia|algia|phobia)"
    r"|(?:\w+ ){0,2}(?:disease|syndrome|disorder|condition|intolerance)"
)
BODY = (
    "arm|leg|wrist|ankle|foot|toe|finger|thumb|hand|elbow|knee|shoulder|hip|rib|ribs|collarbone|nose|jaw"
    "|back|neck|tooth"
    "|spine|skull|pelvis|achilles|acl|hamstring|knees|feet|eyes|eyesight|hearing|heart|lungs|stomach|skin|ears"
)
STATES_OF_HEALTH = (
    "diabetic|asthmatic|epileptic|autistic|dyslexic|colou?r-?\\s?blind|left-handed|right-handed|ambidextrous|blind|deaf"
    "|hard of hearing|short-sighted|near-?sighted|far-?sighted|anaemic|anemic|pregnant|lactose intolerant"
    "|lactose-intolerant|gluten intolerant|gluten-intolerant|coeliac|celiac|hiv positive|neurodivergent|bipolar"
    "|in a wheelchair|in remission"
)
DIETS = (
    "vegetarian|vegan|pescatarian|flexitarian|pescetarian|gluten-free|dairy-free|plant-based|keto|paleo|kosher|halal"
    "|omnivore|fruitarian|teetotal|a teetotaler|teetotaller"
)
TONGUES = (
    "english|spanish|german|french|portuguese|italian|dutch|flemish|swedish|norwegian|danish|finnish|icelandic|polish"
    "|czech|slovak|hungarian|romanian|bulgarian|greek|turkish|russian|ukrainian|serbian|croatian|bosnian|slovenian"
    "|albanian|macedonian|estonian|latvian|lithuanian|irish|gaelic|welsh|scottish gaelic|basque|catalan|galician|arabic"
    "|hebrew|yiddish|persian|farsi|kurdish|pashto|urdu|hindi|punjabi|gujarati|bengali|marathi|tamil|telugu|kannada"
    "|malayalam|sinhala|nepali|thai|lao|khmer|vietnamese|burmese|malay|indonesian|tagalog|filipino|javanese|chinese"
    "|mandarin|cantonese|hokkien|taiwanese|japanese|korean|mongolian|georgian|armenian|azerbaijani|kazakh|uzbek"
    "|swahili|amharic|somali|yoruba|igbo|hausa|zulu|xhosa|afrikaans|twi|wolof|quechua|guarani|maori|hawaiian|latin"
    "|esperanto|sign language|british sign language|american sign language|asl|bsl|maltese|luxembourgish|swiss german"
)
NATIONALITIES = (
    "dutch|belgian|german|french|spanish|portuguese|italian|swiss|austrian|british|english|scottish|welsh|irish|danish"
    "|swedish|norwegian|finnish|icelandic|polish|czech|slovak|hungarian|romanian|bulgarian|greek|turkish|russian"
    "|ukrainian|serbian|croatian|slovenian|albanian|estonian|latvian|lithuanian|american|canadian|mexican|brazilian"
    "|argentinian|argentine|chilean|peruvian|colombian|venezuelan|ecuadorian|bolivian|uruguayan|cuban|jamaican"
    "|australian|indian|pakistani|bangladeshi|sri lankan|nepali|nepalese|chinese|taiwanese|japanese|korean|south korean"
    "|vietnamese|thai|indonesian|malaysian|filipino|singaporean|egyptian|moroccan|algerian|tunisian|nigerian|ghanaian"
    "|kenyan|ethiopian|south african|israeli|lebanese|syrian|iraqi|iranian|persian|afghan|kurdish|catalan|basque"
    "|european|african|asian|latina|latino|maltese|cypriot|georgian|armenian"
)
BELIEFS = (
    "jewish|catholic|protestant|muslim|hindu|buddhist|christian|orthodox|atheist|agnostic|quaker|sikh|mormon|religious"
    "|an atheist|an agnostic|a muslim|a buddhist|a christian|a catholic|a hindu|a sikh|a quaker"
)
TRAITS = (
    "an introvert|an extrovert|a morning person|a night owl|an early bird|an early riser|a vegetarian|a pacifist"
    "|a feminist|a perfectionist|a dog person|a cat person|a foodie|a smoker|a non-smoker|a nonsmoker|gay|a lesbian"
    "|bisexual|trans|transgender|nonbinary|non-binary|asexual|queer|bilingual|trilingual|adopted|an only child|a twin"
    "|an orphan|a single (?:mom|mum|dad|parent|mother|father)|introverted|shy|right-handed|left-handed|retired"
    "|a light sleeper|a heavy sleeper|a slow reader|a late riser"
)
OCCASIONS = (
    "wedding|exam|interview|job interview|flight|appointment|dentist appointment|doctor's appointment|surgery|operation"
    "|concert|graduation|driving test|anniversary|wedding anniversary|party|birthday party|last day|first day|due date"
    "|deadline|presentation|competition|tournament|game|race|marathon|recital|performance|vacation|holiday|trip"
    "|thesis defense|thesis defence|defence|defense|viva|move|moving day|house-?warming|baby shower|christening"
    "|bar mitzvah|baptism|funeral|check-?up|scan|mri|court date|visa appointment|conference|meeting|lesson|class"
    "|course|audition|try-?out|hearing|gig|show|exhibition|launch|match|final|train|ferry|cruise|retreat|reunion"
    "|follow-up|biopsy|chemo|physio|therapy session|haircut|parent-teacher meeting|start date"
)
WEEKDAYS = "mon|tues|wednes|thurs|fri|satur|sun"
FREQUENCY = (
    rf"(?:every|each) (?:single |other |second )?(?:day|morning|evening|night|week|weekend|month|year|summer|winter"
    rf"|spring|autumn|fall|workday|weekday|(?:{WEEKDAYS})day(?: and (?:{WEEKDAYS})day)?)(?: (?:morning|evening|night"
    rf"|afternoon))?|on (?:{WEEKDAYS})days(?:(?:,| and) (?:{WEEKDAYS})days)*|on weekends|at weekends|on weekdays"
    rf"|at the weekend|(?:once|twice|three times|four times|five times|several times|a few times) (?:a|per|every) "
    rf"(?:day|week|month|year)|daily|weekly|monthly|most (?:days|mornings|evenings|nights|weekends|weeks)"
    r"|in the (?:mornings?|evenings?|afternoons?)|at night|all year round|on a daily basis|before (?:work"
    r"|breakfast|bed)"
    rf"|after (?:work|dinner|lunch)|(?:{WEEKDAYS})day (?:mornings|evenings|nights|afternoons)"
)
