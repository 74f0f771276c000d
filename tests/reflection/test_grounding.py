"""Only what the user said is kept as a fact."""

from __future__ import annotations

import pytest
from tables import each_row

from topicloom import Claim, Said, StoredMessage
from topicloom.reflection.grounding import find_flaw, ground_claims
from topicloom.state.stored_message import MessageRole


def message(seq: int, role: MessageRole, text: str, speaker: str | None = None) -> StoredMessage:
    time = f"2026-03-2{seq}T09:00:00+00:00"
    return StoredMessage(seq=seq, role=role, text=text, time=time, speaker=speaker)


RECORDS = [
    message(1, "user", "Since May I live in Leeds, at 14 Mill Lane, with my sister Mei."),
    message(2, "assistant", "You are allergic to peanuts, aren't you?"),
    message(3, "user", "我对花生过敏，住在利兹。", "Yue"),
    message(4, "user", "OK"),
]
BY_ID = {r.id: r for r in RECORDS}


BORNE_OUT = [
    ("I can't eat peanuts, they make my throat swell", "The user is allergic to peanuts."),
    ("I can't eat peanuts, they make me ill.", "The user is allergic to peanuts."),
    ("I can't eat peanuts, they make me ill.", "The user cannot eat peanuts."),
    ("I stopped eating meat years ago.", "The user is vegetarian."),
    ("I stopped eating meat years ago.", "The user stopped eating meat years ago."),
    ("My wife and I are both 34", "The user is 34 years old."),
    ("I moved from York to Leeds in May", "The user lives in Leeds since May."),
    ("I'm a vegetarian but my partner isn't", "The user is vegetarian; the user's partner is not."),
    ("I'm a nurse in the hospital at Leeds.", "The user works as a nurse at a hospital in Leeds."),
    ("My daughter Nell will be seven in June.", "The user's daughter Nell turns seven in June."),
    ("Please keep your answers short.", "The user prefers short answers."),
    ("I get up at five every morning to run before work.", "The user runs early in the morning."),
    ("We tied the knot last summer in Siena.", "The user got married in Siena last summer."),
    ("My boss at Siemens wants the report by Friday.", "The user works at Siemens."),
    ("Our golden retriever Max needs his shots.", "The user has a golden retriever called Max."),
    ("I've been playing the cello since I was six.", "The user plays the cello."),
    (
        "Driving scares me, I always take the train.",
        "The user does not like driving and takes the train.",
    ),
    ("I grew up speaking Polish at home.", "The user's native language is Polish."),
    (
        "I'm doing a PhD in marine biology at Bergen.",
        "The user is a doctoral student of marine biology in Bergen.",
    ),
    ("Coffee gives me migraines so I stick to tea.", "The user drinks tea rather than coffee."),
    (
        "My mum has dementia and lives with us.",
        "The user's mother has dementia and lives with the user.",
    ),
    ("I sold my car, I only cycle now.", "The user gets around by bicycle."),
    ("我住在杭州，家里有只猫叫豆包。", "用户住在杭州，养了一只叫豆包的猫。"),
    ("我住在杭州，家里有只猫叫豆包。", "用户住在杭州。"),
    ("我老婆下个月生孩子", "用户的妻子下个月生孩子。"),
    ("我对花生过敏", "用户对花生过敏。"),
    ("我妈妈有痛风，每天吃非布司他", "用户的妈妈患有痛风，每天服用非布司他。"),
    ("花生我一吃嗓子就肿，碰都不敢碰。", "用户对花生过敏。"),
    ("我好几年没吃过肉了。", "用户吃素。"),
    ("我在利兹的医院当护士。", "用户是利兹一家医院的护士。"),
    ("女儿妮妮六月就七岁了。", "用户的女儿妮妮六月满七岁。"),
    ("回答请尽量简短一点。", "用户喜欢简短的回答。"),
    ("每天五点起床，上班前跑个步。", "用户有早起跑步的习惯。"),
    ("我们去年夏天在大理办的婚礼。", "用户去年夏天在大理结婚。"),
    ("我从小学大提琴，拉了二十年。", "用户会拉大提琴。"),
    ("我不敢开车，出门都坐高铁。", "用户不开车，出行坐高铁。"),
    ("我在厦门大学读海洋生物的博士。", "用户是厦门大学海洋生物专业的博士生。"),
    ("咖啡一喝就头疼，我只喝茶。", "用户不喝咖啡，喝茶。"),
    ("爸爸去年退休了，现在跟我们一起住。", "用户的父亲已退休，与用户同住。"),
    ("车卖了，现在上班骑自行车。", "用户骑自行车上班。"),
]
NOT_SAID = [
    ("I can't eat peanuts, they make my throat swell", "The user is allergic to cats."),
    ("I can't eat peanuts, they make my throat swell", "The user works as a doctor."),
    ("My wife and I are both 34", "The user is 43 years old."),
    ("I moved from York to Leeds in May", "The user lives in Oslo."),
    ("I moved from York to Leeds in May", "The user works in a bank in Leeds."),
    ("What is the best way to cook salmon?", "The user is vegetarian."),
    ("Can you recommend a hotel in Lisbon?", "The user lives in Lisbon."),
    ("My daughter Nell will be seven in June.", "The user's son Nell turns seven in June."),
    ("My daughter Nell will be seven in June.", "The user's daughter plays the piano."),
    ("I'm a nurse in the hospital at Leeds.", "The user has diabetes."),
    ("Please keep your answers short.", "The user has two children."),
    ("I stopped eating meat years ago.", "The user loves steak."),
    ("Our golden retriever Max needs his shots.", "The user has three cats."),
    ("Thanks, that helps a lot!", "The user is grateful and lives in Berlin."),
    ("My brother is allergic to bees.", "The user is allergic to nuts."),
    ("I've been playing the cello since I was six.", "The user plays tennis."),
    ("How do I fix a leaking tap?", "The user is a plumber."),
    ("My boss wants the report by Friday.", "The user is married."),
    ("I'm doing a PhD in marine biology at Bergen.", "The user teaches history at a school."),
    ("It's raining again.", "The user likes rain."),
    ("I sold my car, I only cycle now.", "The user owns an electric car."),
    ("My brother is allergic to bees.", "The user is allergic to bees."),
    ("Anna is allergic to nuts.", "The user is allergic to nuts."),
    ("I'm allergic to peanuts.", "The user is not allergic to peanuts."),
    ("I don't eat meat.", "The user eats meat."),
    ("Do I live in Leeds?", "The user lives in Leeds."),
    ("If I lived in Oslo I would ski.", "The user lives in Oslo."),
    ("I'm a vegetarian but my partner isn't", "The user is not a vegetarian."),
    ("花生我一吃嗓子就肿，碰都不敢碰。", "用户养了两只猫。"),
    ("我住在杭州，家里有只猫叫豆包。", "用户在银行工作。"),
    ("我住在杭州，家里有只猫叫豆包。", "用户对猫毛过敏。"),
    ("我老婆下个月生孩子", "用户单身。"),
    ("我在利兹的医院当护士。", "用户患有糖尿病。"),
    ("三文鱼怎么做好吃？", "用户吃素。"),
    ("帮我推荐一家里斯本的酒店。", "用户住在里斯本。"),
    ("女儿妮妮六月就七岁了。", "用户的儿子在学钢琴。"),
    ("回答请尽量简短一点。", "用户有两个孩子。"),
    ("我好几年没吃过肉了。", "用户最爱吃牛排。"),
    ("谢谢，很有帮助！", "用户住在柏林。"),
    ("我从小学大提琴，拉了二十年。", "用户会打网球。"),
    ("水龙头漏水怎么修？", "用户是水管工。"),
    ("老板要我周五交报告。", "用户已经结婚。"),
    ("我在厦门大学读海洋生物的博士。", "用户在中学教历史。"),
    ("又下雨了。", "用户喜欢下雨天。"),
    ("车卖了，现在上班骑自行车。", "用户有一辆电动汽车。"),
    ("我们去年夏天在大理办的婚礼。", "用户在昆明开了一家餐馆。"),
    ("我不吃花生。", "用户吃花生。"),
    ("我对花生过敏。", "用户对花生不过敏。"),
    ("我妈妈有痛风", "用户患有痛风。"),
    ("他对花生过敏", "用户对花生过敏。"),
]
BORNE_OUT_TOO = [
    ("My knees are shot, so no more skiing for me.", "The user has bad knees and no longer skis."),
    ("I turn forty next week.", "The user will be forty next week."),
    ("We've got twins, Ada and Leo.", "The user has twins called Ada and Leo."),
    ("I'm type one diabetic.", "The user has type 1 diabetes."),
    ("I work nights at the bakery.", "The user works night shifts at a bakery."),
    ("Lactose and I don't get along.", "The user is lactose intolerant."),
    ("I rent a flat above a pub in Cork.", "The user lives in a rented flat in Cork."),
    ("I can't stand horror films.", "The user dislikes horror films."),
    ("我左膝盖动过手术，不能爬山。", "用户左膝做过手术，不能登山。"),
    ("下周我就四十了。", "用户下周满四十岁。"),
    ("家里有对双胞胎，叫安安和乐乐。", "用户有一对双胞胎安安和乐乐。"),
    ("我在面包店上夜班。", "用户在面包店上夜班。"),
    ("牛奶我一喝就拉肚子。", "用户乳糖不耐受。"),
    ("我租住在大连一家酒吧楼上。", "用户在大连租房。"),
    ("恐怖片我一点都看不了。", "用户不喜欢恐怖片。"),
    ("我是左撇子。", "用户惯用左手。"),
]
NOT_SAID_EITHER = [
    ("My knees are shot, so no more skiing for me.", "The user plays the piano."),
    ("I turn forty next week.", "The user has a big family."),
    ("Where can I buy skis?", "The user skis."),
    ("My sister is type one diabetic.", "The user has diabetes."),
    ("I work nights at the bakery.", "The user is allergic to wheat."),
    ("I rent a flat above a pub in Cork.", "The user owns a house in Dublin."),
    ("I can't stand horror films.", "The user writes novels."),
    ("The weather is awful today.", "The user lives in Scotland."),
    ("我左膝盖动过手术，不能爬山。", "用户在医院工作。"),
    ("下周我就四十了。", "用户有一对双胞胎。"),
    ("哪里能买到滑雪板？", "用户会滑雪。"),
    ("我姐姐是左撇子。", "用户是左撇子。"),
    ("我在面包店上夜班。", "用户对小麦过敏。"),
    ("我租住在大连一家酒吧楼上。", "用户在上海有套房子。"),
    ("恐怖片我一点都看不了。", "用户写小说。"),
    ("今天天气真差。", "用户住在苏格兰。"),
]
"""Pairs that the threshold was not chosen on."""
MISJUDGED = {
    # Too far from what was said, in these words.
    "The user gets around by bicycle.",
    "The user has type 1 diabetes.",
    "用户乳糖不耐受。",
    # Too near to it.
    "The user works in a bank in Leeds.",
    "The user's son Nell turns seven in June.",
    "The user likes rain.",
    "用户住在里斯本。",
    "用户喜欢下雨天。",
}
"""Claims that are judged wrongly: 6 of 90, and 2 of the 32 others."""


def is_kept(said: str, claim: str) -> bool:
    return not find_flaw(Claim(claim, ("m1",)), {"m1": message(1, "user", said)})


@pytest.mark.slow
@each_row(
    ("pairs", "kept"),
    [
        (BORNE_OUT, True),
        (NOT_SAID, False),
        (BORNE_OUT_TOO, True),
        (NOT_SAID_EITHER, False),
    ],
)
def test_claims_are_judged_by_what_they_mean(pairs: list[tuple[str, str]], kept: bool) -> None:
    wrong = {claim for said, claim in pairs if is_kept(said, claim) != kept}
    assert wrong <= MISJUDGED


@each_row(
    ("said", "claim"),
    [
        ("我对花生过敏吗？", "用户对花生过敏"),
        ("如果我对花生过敏怎么办？", "用户对花生过敏"),
        ("我朋友问：“我住在上海吗？”", "用户住在上海"),
        ("If my sister lives in Leeds. What then?", "User's sister lives in Leeds."),
        ("I live in Leeds.", ""),
        ("医生说我对花生过敏，其实不是。", "用户对花生过敏"),
        ("体检说我有高血压，后来发现是误诊。", "用户有高血压"),
        ("My doctor said I'm allergic to nuts, but that’s not true.", "I'm allergic to nuts"),
        ("They wrote that I live in Leeds, but they were wrong.", "I live in Leeds"),
        ("I want to have two cats.", "The user has two cats."),
        ("I'd like to live in Oslo.", "The user lives in Oslo."),
        ("我想养两只猫。", "用户养了两只猫。"),
        ("我打算搬到杭州。", "用户住在杭州。"),
    ],
)
def test_what_is_asked_supposed_quoted_taken_back_or_wished_is_not_said(
    said: str, claim: str
) -> None:
    assert not is_kept(said, claim)


@each_row(
    ("said", "claim"),
    [
        ("You may not believe that I have three cats, but it's true.", "I have three cats"),
        ("我喜欢茶，不喜欢咖啡。", "用户喜欢茶"),
        ("我对花生过敏，这不是开玩笑。", "用户对花生过敏"),
        ("I want to have two cats.", "The user wants to have two cats."),
        ("I wanted to tell you I have two cats.", "The user has two cats."),
        ("我打算搬到杭州。", "用户打算搬到杭州。"),
    ],
)
def test_what_only_looks_like_it_is_said(said: str, claim: str) -> None:
    assert is_kept(said, claim)


@each_row(
    ("text", "ids", "flaw"),
    [
        ("The user lives in Leeds.", ("m1",), ""),
        ("The user's sister is Mei.", ("m1",), ""),
        ("The user is living at 14 Mill Lane, Leeds.", ("m1", "m4"), ""),
        ("用户对花生过敏。", ("m3",), ""),
        ("Yue: 住在利兹", ("m3",), ""),
        ("The user is allergic to peanuts.", ("m2",), "rests on no message of the user"),
        ("The user is allergic to peanuts.", ("m4",), "is not what the user said"),
        ("The user is allergic to peanuts.", ("m2", "m4"), "is not what the user said"),
        ("The user lives at 15 Mill Lane, Leeds.", ("m1",), "names what the user did not"),
        ("用户喜欢登山和摄影。", ("m3",), "is not what the user said"),
        ("The user lives in Leeds.", (), "rests on no message"),
        ("The user lives in Leeds.", ("m1", "m9"), "rests on a message that was not shown"),
        ("The user.", ("m1",), "is not what the user said"),
    ],
)
def test_each_flaw_of_a_claim_is_named(text: str, ids: tuple[str, ...], flaw: str) -> None:
    assert find_flaw(Claim(text, ids), BY_ID) == flaw


def test_what_is_dropped_is_counted_and_what_is_kept_is_dated() -> None:
    claims = [
        Claim("The user lives in Leeds", ("m1", "m3"), ("old",)),
        Claim("nonsense", ("m4",)),
        Claim("more nonsense", ("m4",)),
        Claim("nonsense", ("m8",)),
    ]
    kept = ground_claims(claims, RECORDS, {"m1": "a", "m3": "c", "m4": "d"}, {"m3": "r3"})
    ((fact, supersedes),) = kept.facts
    assert (fact.messages, fact.at, supersedes) == (("a", "c"), RECORDS[2].time, ("old",))
    assert fact.said == (Said(fact.at, "c", "r3"),)
    assert kept.dropped == {
        "is not what the user said": 2,
        "rests on a message that was not shown": 1,
    }


def test_what_was_pasted_or_is_anothers_bears_nothing_out() -> None:
    pasted = message(1, "user", "Translate this letter:\n\nDear Sir,\nI live in Leeds.")
    other = message(2, "user", "I live in Leeds.", "Otto").model_copy(update={"of_another": True})
    own = message(3, "user", "I live in Leeds.")
    label = message(4, "user", "**Profile:** I live in Leeds.")
    claims = [Claim("The user lives in Leeds.", (f"m{n}",)) for n in (1, 2, 3, 4)]
    assert [find_flaw(c, {m.id: m for m in (pasted, other, own, label)}) for c in claims] == [
        "is not what the user said",
        "rests on no message of the user",
        "",
        "is not what the user said",
    ]
