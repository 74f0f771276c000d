"""Plain statements that people make of themselves, recognised by their form.

Only forms that hardly mean anything else are here: someone who says "I'm allergic to nuts" is,
while "I'm looking for nuts", "my code is broken" and "I like that" say nothing for good. What is
missed costs a fact; what is taken wrongly would be believed for months.
"""

from __future__ import annotations

import re

_PEOPLE = (
    r"(?:(?:older|younger|big|little|eldest|youngest|twin) )?(?:wife|husband|partner|girlfriend|"
    r"boyfriend|fianc[ée]e?|spouse|mother|mom|mum|father|dad|parents|grand(?:mother|father|ma|pa)|"
    r"sister|brother|twin|daughter|son|kids?|child(?:ren)?|niece|nephew|aunt|uncle|cousin|dog|cat)"
)
_ATTRIBUTES = (
    r"(?:(?:first|last|full|middle) )?name|birthday|age|height|job|hometown|"
    r"(?:native|first) language|blood type|diet|allerg(?:y|ies)|favou?rite [\w' -]{2,30}|"
    r"pronouns|religion|nationality"
)
_CONDITIONS = (
    r"diabet(?:es|ic)|asthma(?:tic)?|celiac(?: disease)?|coeliac(?: disease)?|adhd|epilepsy|gout|"
    r"hypertension|high blood pressure|migraines|(?:an? )?[\w-]{2,20} allergy|"
    r"(?:an? )?allerg(?:y|ies) to\b.+"
)
_START = r"^(?:(?:and|but|so|well|oh|hi|hello|hey|also|actually|yes|no|by the way|btw)[, ]+)*"
_NOW = r"(?:now |currently |still |also |both |actually |really |mostly )*"
_ENGLISH_FRAMES = (
    ("name", r"my (?:(?:first|full) )?name(?: is|'s) \w"),
    ("name", r"(?:please )?call me (?-i:[A-Z])\w"),
    ("name", r"i(?: am|'m) (?-i:[A-Z])[a-z]+,? (?:an? |from |and i\b)\w*"),
    ("age", rf"i(?: am|'m) {_NOW}\d{{1,3}}(?: years old| this year)?$"),
    ("home", rf"i {_NOW}live (?:in|at|near|with|on) \w"),
)
_ENGLISH_FORMS = (
    rf"my (?:{_PEOPLE})(?:'s \w+)?(?:,? \w+,?)? (?:is|are|was|lives?|works?|has|had) \w",
    rf"my (?:{_ATTRIBUTES})(?: is| are|'s) \w",
    (
        rf"i(?: am|'m) {_NOW}(?:allergic to|from|vegan|vegetarian|pescatarian|diabetic|asthmatic|"
        r"married|single|divorced|widowed|retired|left-handed|colou?r-?blind|lactose intolerant|"
        r"pregnant|an only child|born)\b"
    ),
    (
        rf"i(?: am|'m) {_NOW}an? (?!bit\b|little\b|lot\b|fan of (?:it|that|this)\b|few\b|while\b)"
        r"(?:\w[\w-]* ){0,3}\w*(?:er|or|ist|ian|ant|ent|nurse|chef|cook|vegan|vegetarian|dad|mom|"
        r"mum|parent|pilot|clerk|judge|coach)\b(?! of (?:it|that)\b)"
    ),
    rf"i {_NOW}work (?:as|at|for|in) \w",
    rf"i {_NOW}(?:study|teach) (?!this\b|that\b|it\b)\w",
    (
        rf"i {_NOW}(?:like|love|prefer|hate|dislike|enjoy|can't stand|cannot stand) "
        r"(?!to$|it\b|that\b|this\b|these\b|those\b|them\b|your?\b|him\b|her\b|how\b|what\b|when\b|"
        r"the (?:idea|way|sound|first|second|last|other|one)\b)\w"
    ),
    (
        r"i (?:don't|do not|never|can't|cannot) (?:eat|drink|smoke|drive|like|speak) "
        r"?(?!it\b|that\b|this\b|these\b|those\b)\w*"
    ),
    (
        rf"i {_NOW}have (?:an? |one |two |three |four |five |\d+ |no )?(?:\w+ )?(?:{_PEOPLE}|cats|"
        r"dogs|sons|daughters|sisters|brothers)\b"
    ),
    rf"i {_NOW}have (?:{_CONDITIONS})",
    r"i (?:was born|grew up) in \w",
    r"i(?: have|'ve)? moved to \w",
    rf"i {_NOW}speak (?-i:[A-Z])\w+",
)
_KIN = (
    r"(?:妈妈?|母亲|爸爸?|父亲|老婆|妻子|太太|老公|丈夫|先生|女朋友|男朋友|儿子|女儿|孩子|哥哥?|姐姐?|"
    r"弟弟?|妹妹?|爷爷|奶奶|外公|外婆|姥姥|姥爷|侄子|侄女|外甥|表[哥姐弟妹]|堂[哥姐弟妹]|猫|狗)"
)
_ZH_NOW = (
    r"(?:现在|目前|一直|从小|今年|其实|真的|就|也|还|都|是|平时|已经|"
    r"最|很|非常|特别|比较|更|挺|超)*"
)
_ZH_START = (
    r"^(?:对了|另外|顺便说(?:一句|一下)?|其实|你好|嗨|哦|嗯|而且|还有|因为|所以|不过|但是?|那)*"
    r"[，, ]*"
)
_CHINESE_FRAMES = (
    ("name", r"我(?:的名字)?叫(?!你|他|她|它|做|什么|醒|不)[\w·]{1,12}$"),
    ("name", r"我(?:的)?名字是\w"),
    ("name", r"(?:你?可以)?叫我\w{1,8}(?:就好|就行|吧)?$"),
    ("age", r"我(?:今年)?(?:已经)?[\d一二三四五六七八九十]{1,4}岁"),
    ("home", rf"我{_ZH_NOW}(?:家)?住(?:在)?(?!院|手|口)\w"),
)
_CHINESE_FORMS = (
    rf"我(?:的)?{_KIN}(?!们?(?:说|问|让|叫我|觉得))\w*?(?:是|叫|在|住|有|对|喜欢|不|今年|属|爱|最|\d)\w",
    r"我(?:的)?(?:生日|工作|职业|老家|家乡|母语|血型|专业|身高|爱好)(?:是|在)\w",
    rf"我{_ZH_NOW}对[\w、]{{1,20}}过敏",
    (
        r"我(?:是|在当|当)(?:一[名个位])?(?!说|想|不是|要|觉得|怕|指)[\w]{0,12}"
        r"(?:师|医生|护士|员|生|家|工人|司机|律师|经理|教授|警察|程序员|人|素食者|左撇子|独生子女?)$"
    ),
    r"我在[\w]{1,20}(?:工作|上班|上学|读书|念书|教书|读(?:研|博|大学|高中))",
    (
        rf"我{_ZH_NOW}(?:不太?|从不|从来不)?(?:喜欢|爱|讨厌|受不了|吃不了|爱吃|爱喝)"
        r"(?!这|那|你|它|他|她|上了你|的是)\w"
    ),
    r"我(?:不|从不|从来不)(?:吃|喝|抽|能吃|能喝)(?!这|那|了|完|下)\w",
    rf"我有(?:[一两二三四五\d]?[个只条位名])?{_KIN}",
    r"我(?:患|得)?有\w{0,6}(?:病|高血压|哮喘|痛风|过敏|近视|色盲)",
    r"我(?:出生在|来自|老家在|生于)\w",
    r"我(?:已经)?搬到了?\w",
)
_FRAMES = [
    *((frame, re.compile(_START + form, re.IGNORECASE)) for frame, form in _ENGLISH_FRAMES),
    *((frame, re.compile(_ZH_START + form)) for frame, form in _CHINESE_FRAMES),
]
_FORMS = [
    *(form for _, form in _FRAMES),
    *(re.compile(_START + form, re.IGNORECASE) for form in _ENGLISH_FORMS),
    *(re.compile(_ZH_START + form) for form in _CHINESE_FORMS),
]
_RELATIVES = re.compile(rf"\b{_PEOPLE}\b|{_KIN}", re.IGNORECASE)
_OTHERS = re.compile(
    rf"(?:my {_PEOPLE}\b|he\b|she\b|they\b|(?-i:[A-Z][a-z]+) (?:is|was|has|had|can|can't|lives|"
    r"works|likes|loves|hates)\b)(?!.*\b(?:i|i'm|i've|we|me|us|my|our)\b)|"
    rf"(?:我(?:的)?{_KIN}|他|她)(?!.*我)",
    re.IGNORECASE,
)
"""Beginnings of sentences that are of somebody else, and not of the user too."""
_SUPPOSED = re.compile(
    r"\b(?:if|suppose|supposing|imagine|pretend|wish|unless|let's say|hypothetically|for instance|"
    r"for example|such as|in (?:the|my|a) (?:story|novel|game|dream))\b|"
    r"如果|要是|假如|假设|假装|万一|想象|比如|例如|梦见|小说|扮演|倘若",
    re.IGNORECASE,
)
"""What comes after these in a sentence is not said of the real world."""
_UNSURE = re.compile(
    r"\b(?:would|could|should|might|maybe|perhaps|hope)\b|可能|也许|或许|好像|似乎|希望|的话",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[?？]|(?:吗|呢|么|吧)[。！!.~～ ]*$")
_TAG = re.compile(
    r"\b(?:right|is it|isn't it|am i|aren't i|do i|don't i)\s*[?？]|"
    r"(?:是|对|好)(?:吗|吧|不对|不是)",
    re.IGNORECASE,
)
"""At the end of a sentence these put all of it in question."""
_CLAUSE = re.compile(
    r",? (?:and|but|so|because|considering) (?=(?:i|i'm|i've|my|can|could|how|what|would)\b)|"
    r", (?=(?:i|i'm|i've|my|can|could|how|what|would|do|does|is|are|please)\b)|[，,](?![a-z ])",
    re.IGNORECASE,
)
"""Between clauses that stand by themselves."""
_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|^[ \t]*[>|].*$|\"[^\"\n]*\"|“[^”]*”|‘[^’]*’|「[^」]*」|『[^』]*』|"
    r"《[^》]*》|<[^<>]*>",
    re.DOTALL | re.MULTILINE,
)
_SENTENCE = re.compile(
    r"(?:\b(?:St|Mrs?|Ms|Dr|Prof)[.]|[.](?=\w)|[^.!?。！？；;\n])+[.!?。！？；;\n]*"
)
_MARK = "\ufffc"
_LONGEST = 200
"""Characters of a sentence that can be a plain statement."""
_READ = 20_000
"""Characters of a message that are looked at."""


def find_statements(text: str) -> list[str]:
    """The clauses of a message in which somebody says something of himself, word for word.

    Questions, suppositions and clauses with anything quoted in them are none.
    """
    return [c for s in _find_sentences(text) for c in _split_clauses(s) if _is_statement(c)]


def find_assertions(text: str) -> list[str]:
    """The clauses of a message that are neither asked nor supposed, and what several come to.

    What is quoted is left out.
    """
    found: list[str] = []
    for sentence in _find_sentences(text):
        clauses = [c for c in _split_clauses(sentence) if c and not _ASKED.search(c)]
        whole = [sentence] if len(clauses) > 1 and not _ASKED.search(sentence) else []
        found += [c.replace(_MARK, " ") for c in (*clauses, *whole)]
    return found


def is_of_another(sentence: str, claim: str) -> bool:
    """True if a sentence is of somebody else whom a claim in the first person does not name."""
    subject = _OTHERS.match(sentence)
    return subject is not None and not (
        _RELATIVES.search(claim) or any(w in claim for w in subject[0].split()[:1])
    )


def find_frame(sentence: str) -> str:
    """The one thing that a statement is about, if people have only one: "name", "age", "home"."""
    bare = _strip_punctuation(sentence)
    return next((frame for frame, form in _FRAMES if form.search(bare)), "")


def _find_sentences(text: str) -> list[str]:
    bare = _QUOTED.sub(_MARK, text[:_READ])
    return [" ".join(s.split()) for s in _SENTENCE.findall(bare)]


def _split_clauses(sentence: str) -> list[str]:
    """The clauses before anything is supposed; none of a sentence that is questioned as such."""
    supposed = _SUPPOSED.search(sentence)
    if _TAG.search(sentence) or (supposed and not supposed.start()):
        return []
    clauses = _CLAUSE.split(sentence[: supposed.start()] if supposed else sentence)
    # What a supposition cuts short cannot be told from what it is about.
    return clauses[:-1] if supposed else clauses


def _is_statement(sentence: str) -> bool:
    if len(sentence) > _LONGEST or _MARK in sentence or _ASKED.search(sentence):
        return False
    bare = _strip_punctuation(sentence)
    return not _UNSURE.search(sentence) and any(form.search(bare) for form in _FORMS)


def _strip_punctuation(sentence: str) -> str:
    return sentence.replace("’", "'").strip(" .!。！；;，,~～")
