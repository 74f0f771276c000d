"""Cues: each phrase fires in sentences that people write, and ordinary sentences do not."""

from __future__ import annotations

from importlib.resources import files

import pytest

from topicloom.prompts.loader import load_cues
from topicloom.state.cues import Cues, normalize

AMNESIA = load_cues("amnesia_en", "amnesia_zh")
FILLERS = load_cues("fillers")

ENGLISH: dict[str, tuple[str, ...]] = {
    "you forgot": (
        "You forgot the budget again.",
        "I think you forgot what my sister is called",
        "Hey, you forgot!",
    ),
    "you've forgotten": (
        "You’ve forgotten my dog's name, haven't you?",
        "So you've forgotten the whole plan.",
        "It seems you've forgotten.",
    ),
    "have you forgotten": (
        "Have you forgotten that I am vegan?",
        "What, have you forgotten already?",
        "have you forgotten about the Lisbon trip",
    ),
    "did you forget": (
        "Did you forget the deadline?",
        "Wait, did you forget that I moved?",
        "DID YOU FORGET",
    ),
    "you don't remember": (
        "You don't remember the recipe?",
        "If you don’t remember, look it up.",
        "So you don't remember Maria at all...",
    ),
    "you do not remember": (
        "You do not remember which car I bought.",
        "I see that you do not remember it.",
        "Strange that you do not remember.",
    ),
    "don't you remember": (
        "Don't you remember? It was the blue one.",
        "But don’t you remember the name of the hotel",
        "Why, don't you remember!",
    ),
    "do you not remember": (
        "Do you not remember my allergy?",
        "Do you not remember, it was in May",
        "Really, do you not remember?",
    ),
    "you should remember": (
        "You should remember this one.",
        "You should remember my blood type by now.",
        "I would say you should remember it",
    ),
    "you should know this": (
        "You should know this already.",
        "Come on, you should know this!",
        "By now you should know this number.",
    ),
    "you must remember": (
        "You must remember the story of the boat.",
        "Surely you must remember.",
        "You must remember her, the one from Porto",
    ),
    "i told you": (
        "I told you I hate coriander.",
        "The thing I told you on Monday, do it like that.",
        "But I told you!",
    ),
    "i already told you": (
        "I already told you my address.",
        "As a matter of fact I already told you.",
        "I already told you: no nuts",
    ),
    "i've told you": (
        "I've told you about the landlord.",
        "Everything I’ve told you still holds",
        "I've told you twice.",
    ),
    "i have told you": (
        "I have told you my size.",
        "I have told you this story.",
        "What I have told you stays between us",
    ),
    "i did tell you": (
        "I did tell you that the office moved.",
        "Well, I did tell you.",
        "i did tell you about the leak",
    ),
    "as i told you": (
        "As I told you, the meeting is on Friday.",
        "It is, as I told you, a rented flat.",
        "Do it as I told you.",
    ),
    "like i told you": (
        "Like I told you, we are five.",
        "It broke, like I told you.",
        "Just like I told you last week",
    ),
    "i already said": (
        "I already said no.",
        "I already said that it has to be red.",
        "Look, I already said it",
    ),
    "i already mentioned": (
        "I already mentioned the price.",
        "I already mentioned that Tom is away.",
        "The one I already mentioned, please.",
    ),
    "i've already said": (
        "I've already said which one.",
        "I’ve already said it costs too much",
        "What I've already said is enough.",
    ),
    "i've already mentioned": (
        "I've already mentioned the dog.",
        "The shop that I've already mentioned",
        "I've already mentioned it, no?",
    ),
    "i've mentioned ... before": (
        "I've mentioned this before.",
        "I've mentioned my knee before, I think",
        "The doctor I've mentioned once before.",
    ),
    "i said ... before": (
        "I said it before: no meat.",
        "I said this once before.",
        "What I said the day before still holds.",
    ),
    "i said that already": (
        "I said that already.",
        "Hm, I said that already, didn't I?",
        "I said that already... twice",
    ),
    "i mentioned ... before": (
        "I mentioned it before.",
        "The café I mentioned the day before",
        "I mentioned my brother before, Leo.",
    ),
    "i mentioned ... earlier": (
        "The book I mentioned earlier.",
        "I mentioned a number earlier, which was it?",
        "Use the port I mentioned earlier today.",
    ),
    "as i said before": (
        "As I said before, it is urgent.",
        "It is, as I said before, a gift.",
        "as i said before, twelve guests",
    ),
    "as i mentioned": (
        "As I mentioned, I work nights.",
        "She is, as I mentioned, my cousin.",
        "As I mentioned: two bedrooms",
    ),
    "like i mentioned": (
        "Like I mentioned, he is allergic.",
        "It closes at six, like I mentioned.",
        "like i mentioned on the phone",
    ),
    "like i said before": (
        "Like I said before, keep it short.",
        "No sugar, like I said before.",
        "like i said before the red one",
    ),
    "i explained ... already": (
        "I explained this already.",
        "I explained the rules already.",
        "I explained it all already!",
    ),
    "i already explained": (
        "I already explained why.",
        "I already explained how the lock works.",
        "Well, I already explained it.",
    ),
    "we already talked about": (
        "We already talked about the roof.",
        "What we already talked about, the loan",
        "We already talked about that!",
    ),
    "we already discussed": (
        "We already discussed the colours.",
        "This is something we already discussed.",
        "we already discussed it",
    ),
    "we've already talked about": (
        "We've already talked about the visa.",
        "We’ve already talked about this",
        "The plan we've already talked about.",
    ),
    "we've already discussed": (
        "We've already discussed the menu.",
        "As for the price, we've already discussed it.",
        "we've already discussed all of that",
    ),
    "we've been over this": (
        "We've been over this.",
        "Come on, we’ve been over this!",
        "I feel we've been over this twice",
    ),
    "we went over this": (
        "We went over this yesterday.",
        "We went over this, remember?",
        "I thought we went over this",
    ),
    "we talked about this": (
        "We talked about this.",
        "In March we talked about this in detail.",
        "we talked about this, no?",
    ),
    "we talked about ... before": (
        "We talked about it before.",
        "The lamp we talked about once before.",
        "We talked about your plan before",
    ),
    "we discussed this": (
        "We discussed this.",
        "I know we discussed this at length.",
        "we discussed this, the answer was no",
    ),
    "we discussed ... before": (
        "We discussed it before.",
        "The options we discussed the week before",
        "We discussed the tax question before.",
    ),
    "we discussed ... last time": (
        "We discussed the roof last time.",
        "What we discussed last time was cheaper",
        "We discussed all three last time.",
    ),
    "we talked about ... last time": (
        "We talked about Rome last time.",
        "The film we talked about last time",
        "We talked about my knee last time.",
    ),
    "what we discussed": (
        "Use what we discussed.",
        "That is not what we discussed!",
        "What we discussed about the bike, please",
    ),
    "what did we decide": (
        "What did we decide about the wedding?",
        "So what did we decide?",
        "And what did we decide in the end",
    ),
    "what did i say about": (
        "What did I say about the neighbours?",
        "What did I say about sugar",
        "Hm, what did I say about it?",
    ),
    "what did i tell you": (
        "What did I tell you about my job?",
        "What did I tell you on Sunday?",
        "See, what did I tell you",
    ),
    "remember when i": (
        "Remember when I lost my keys?",
        "Do you remember when I started running?",
        "remember when i asked about the boiler",
    ),
    "remember when we": (
        "Remember when we planned the garden?",
        "Do you remember when we chose the name",
        "Remember when we talked about Kyoto?",
    ),
    "remember what i": (
        "Do you remember what I paid?",
        "Remember what I said about Mondays.",
        "You remember what I like, right?",
    ),
    "remember, i told": (
        "Remember, I told her no.",
        "It is locked, remember, I told Ben.",
        "Remember? I told everyone.",
    ),
    "you said earlier": (
        "You said earlier that it was free.",
        "That is not what you said earlier!",
        "The number you said earlier, what was it",
    ),
    "you told me earlier": (
        "You told me earlier to wait.",
        "The trick you told me earlier",
        "You told me earlier, didn't you?",
    ),
    "you told me before": (
        "You told me before that it works.",
        "What you told me before, again please.",
        "you told me before how to fix it",
    ),
    "last time we talked": (
        "Last time we talked you liked the blue one.",
        "It was raining last time we talked.",
        "The last time we talked about food",
    ),
    "last time we spoke": (
        "Last time we spoke I was in Oslo.",
        "You were sure, last time we spoke.",
        "last time we spoke it was cheaper",
    ),
    "how many times do i have to": (
        "How many times do I have to say it?",
        "How many times do I have to explain this",
        "Ugh, how many times do I have to repeat my name",
    ),
    "why don't you remember": (
        "Why don't you remember anything?",
        "Why don’t you remember my birthday",
        "But why don't you remember?",
    ),
    "you keep forgetting": (
        "You keep forgetting my name.",
        "Why is it that you keep forgetting?",
        "You keep forgetting that I am left-handed",
    ),
}

CHINESE: dict[str, tuple[str, ...]] = {
    "你忘了": ("你忘了吗？", "你忘了我住在哪儿吧", "这件事你忘了？"),
    "你忘记了": ("你忘记了我的生日。", "我看你忘记了", "是你忘记了，不是我"),
    "你又忘": ("你又忘了！", "怎么，你又忘记我的名字", "你又忘掉预算了"),
    "你是不是忘": ("你是不是忘了我对花生过敏", "你是不是忘记了？", "等等，你是不是忘了什么"),
    "你怎么忘": ("你怎么忘了呢", "才三天你怎么忘记了", "你怎么忘得这么快"),
    "怎么忘了": ("怎么忘了？昨天刚讲的", "这都怎么忘了", "怎么忘了我不吃辣"),
    "是不是忘了": ("是不是忘了我们的计划", "那个密码，是不是忘了？", "是不是忘了啊"),
    "还记得吗": ("我家的猫叫什么，还记得吗？", "还记得吗，那家店", "上次的价格还记得吗"),
    "还记得我": ("还记得我的车型吗", "你还记得我想去哪里吗", "还记得我养的鱼吧"),
    "还记得我们": ("还记得我们定的日期吗", "你还记得我们选了哪个颜色", "还记得我们的约定吗？"),
    "你不记得": ("你不记得了？", "原来你不记得我的专业", "你不记得那本书吗"),
    "你记不记得": ("你记不记得我女儿几岁", "你记不记得那个牌子", "你记不记得？"),
    "你应该记得": ("你应该记得这个数字", "这个你应该记得吧", "你应该记得我不喝酒"),
    "你应该知道": ("你应该知道我在哪家公司", "这个你应该知道的", "你应该知道我的尺码"),
    "我说过": ("我说过不要香菜", "这话我说过的", "我说过两次了！"),
    "我跟你说过": ("我跟你说过这件事", "我跟你说过的那个人", "不是，我跟你说过了"),
    "我和你说过": ("我和你说过我的病史", "我和你说过的那家面馆", "记得吧，我和你说过"),
    "我给你说过": ("我给你说过密码", "我给你说过的呀", "上周我给你说过"),
    "我不是说过": ("我不是说过不去吗", "我不是说过了嘛", "我不是说过要红色的"),
    "我不是跟你说": ("我不是跟你说了吗", "我不是跟你说过地址", "我不是跟你说要靠窗"),
    "我告诉过你": ("我告诉过你我搬家了", "这个我告诉过你", "我告诉过你多少钱"),
    "我不是告诉": ("我不是告诉你了吗", "我不是告诉过你时间", "我不是告诉你周五不行"),
    "我早就说": ("我早就说了", "我早就说过会下雨", "我早就说要两间房"),
    "我早说过": ("我早说过了", "我早说过他不来", "这点我早说过"),
    "我之前说": ("我之前说的方案", "我之前说过喜欢蓝色", "按我之前说的做"),
    "我以前说": ("我以前说的那个城市", "我以前说过吧", "我以前说要学吉他"),
    "我之前提": ("我之前提到的书", "我之前提过一次", "我之前提的要求"),
    "我以前提": ("我以前提过他", "我以前提到的餐馆", "我以前提的建议"),
    "我提过": ("我提过我妈妈的事", "这个我提过吧", "我提过三个条件"),
    "我提到过": ("我提到过那只狗", "之前我提到过的", "我提到过预算"),
    "我上次说": ("我上次说的那款", "我上次说要减糖", "我上次说到哪儿了"),
    "我刚才说过": ("我刚才说过了", "我刚才说过是周三", "这个我刚才说过"),
    "我讲过": ("我讲过这个故事", "我讲过的啊", "规则我讲过了"),
    "我跟你讲过": ("我跟你讲过我的老板", "我跟你讲过的", "昨天我跟你讲过"),
    "之前跟你说": ("之前跟你说的那件事", "之前跟你说过我不吃鱼", "我之前跟你说了呀"),
    "之前和你说": ("之前和你说的航班", "之前和你说过", "我之前和你说的地址"),
    "之前告诉你": ("之前告诉你的密码", "我之前告诉你了", "之前告诉你的那个名字"),
    "以前跟你说": ("以前跟你说的老家", "以前跟你说过", "我以前跟你说的梦想"),
    "之前说过": ("之前说过的那首歌", "我们之前说过价格", "之前说过吧"),
    "之前提过": ("之前提过的医生", "你之前提过一个办法", "之前提过两次"),
    "之前聊过": ("之前聊过的电影", "这个之前聊过", "我们之前聊过装修"),
    "之前讨论": ("之前讨论的方案呢", "之前讨论过这个", "按之前讨论的来"),
    "我们之前聊": ("我们之前聊的旅行", "我们之前聊到哪儿", "我们之前聊了什么"),
    "我们之前说": ("我们之前说的预算", "我们之前说好周六", "我们之前说去哪来着"),
    "我们之前讨论": ("我们之前讨论的合同", "我们之前讨论过", "我们之前讨论到第几章"),
    "我们上次聊": ("我们上次聊的那本书", "我们上次聊到一半", "我们上次聊什么了"),
    "我们上次说": ("我们上次说的菜谱", "我们上次说到这里", "我们上次说好的"),
    "我们上次讨论": ("我们上次讨论的架构", "我们上次讨论的结果", "我们上次讨论过的"),
    "我们讨论过": ("我们讨论过这个", "我们讨论过三种办法", "这件事我们讨论过"),
    "我们聊过": ("我们聊过我的工作", "我们聊过这部电影", "我们聊过吧"),
    "咱们之前": ("咱们之前定的价", "咱们之前选的是哪个", "咱们之前聊的那个"),
    "咱们上次": ("咱们上次说的餐厅", "咱们上次算到哪了", "咱们上次定的日子"),
    "上次说的那个": ("上次说的那个软件", "上次说的那个人是谁", "就上次说的那个"),
    "上次聊的": ("上次聊的话题", "上次聊的那家店", "继续上次聊的"),
    "上回说": ("上回说的那个牌子", "上回说到哪儿", "上回说好的价钱"),
    "说了多少遍": ("我说了多少遍了", "说了多少遍我不吃葱", "这话说了多少遍"),
    "说过多少次": ("说过多少次了", "我说过多少次要小份", "跟你说过多少次"),
    "跟你说了几次": ("跟你说了几次了", "我跟你说了几次别加糖", "都跟你说了几次"),
}

CASES = [
    (cue, text) for table in (ENGLISH, CHINESE) for cue, texts in table.items() for text in texts
]

ORDINARY = [
    "What is the capital of Mongolia?",
    "Remember to buy milk.",
    "Please remember my birthday: 4 May.",
    "I forgot my umbrella at the office.",
    "My brother forgot his keys again.",
    "She told me that you moved.",
    "He said it was fine.",
    "They discussed the budget without us.",
    "Let's talk about the garden.",
    "We should discuss the contract tomorrow.",
    "Can you tell me more about it?",
    "I will tell you tomorrow.",
    "I want to tell you a story.",
    "You know what I mean.",
    "How do I memorise vocabulary?",
    "The last time I was in Rome it rained.",
    "What should I say about my salary in the interview?",
    "Don't forget the salt.",
    "It is easy to forget a password.",
    "I remember that summer well.",
    "Our memory fades with age.",
    "Before we start, what time is it?",
    "As I walked home I saw a fox.",
    "I already bought the tickets.",
    "I like it the way it is.",
    "Explain the difference between a list and a tuple.",
    "You told a good joke.",
    "Why do people dream?",
    "Forget it, let us start again.",
    "I said hello to the neighbours.",
    "Iʼd like a table for two",
    "Summarise this article in three sentences.",
    "",
    "   ",
    "42",
    "!?",
    "今天天气怎么样？",
    "帮我写一封邮件。",
    "别忘了买牛奶。",
    "我忘了带伞。",
    "他忘记了时间。",
    "请记住我的生日是五月四日。",
    "记得提醒我开会。",
    "我告诉他别来。",
    "老师说明天考试。",
    "我想跟你说一件事。",
    "我们明天讨论合同吧。",
    "我们聊聊电影吧。",
    "你知道北京的人口吗？",
    "怎样才能记得更牢？",
    "上次考试我考得不错。",
    "之前的房子太小了。",
    "以前我住在上海。",
    "这个词怎么说？",
    "说说你的看法。",
    "记忆力会随年龄下降吗？",
    "我刚才在开会。",
]


def lines_of(name: str) -> list[str]:
    text = (files("topicloom.prompts") / "cues" / f"{name}.txt").read_text("utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_every_cue_has_sentences() -> None:
    assert set(lines_of("amnesia_en")) == set(ENGLISH)
    assert set(lines_of("amnesia_zh")) == set(CHINESE)
    assert all(len(set(t)) >= 3 for t in (*ENGLISH.values(), *CHINESE.values()))


@pytest.mark.parametrize(("cue", "text"), CASES)
def test_a_cue_is_found(cue: str, text: str) -> None:
    assert Cues.of([cue]).found_in(text)
    assert AMNESIA.found_in(text)


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_sentences_hold_no_cue(text: str) -> None:
    assert not AMNESIA.found_in(text)


@pytest.mark.parametrize(
    "text", ["ok", "OK!", " Thanks. ", "got it", "Go on...", "好的。", "嗯", "然后呢？", "报错了！"]
)
def test_fillers(text: str) -> None:
    assert FILLERS.is_all_of(text)


@pytest.mark.parametrize(
    "text", ["ok then let's plant beans", "thanks for the soup recipe", "好吃"]
)
def test_a_filler_with_more_to_it_is_none(text: str) -> None:
    assert not FILLERS.is_all_of(text)


def test_a_gap_is_up_to_three_words() -> None:
    cues = Cues.of(["we talked ... before"])
    assert cues.found_in("We talked before")
    assert cues.found_in("we talked one two three before")
    assert not cues.found_in("we talked one two three four before")


def test_a_gap_is_up_to_eight_characters_in_chinese() -> None:
    cues = Cues.of(["我们...聊过"])
    assert cues.found_in("我们聊过")
    assert cues.found_in("我们一二三四五六七八聊过")
    assert not cues.found_in("我们一二三四五六七八九聊过")


def test_words_are_whole_in_latin_cues() -> None:
    cues = Cues.of(["i told you"])
    assert cues.found_in("“I told you,” she said")
    assert not cues.found_in("i told young people")
    assert not cues.found_in("Naomi told you")


def test_an_application_may_add_its_own() -> None:
    cues = load_cues("amnesia_en", more=["te lo dije", "已经...讲了"])
    assert cues.found_in("¡Ya te lo dije!")
    assert cues.found_in("这个已经跟客服讲了")
    assert cues.found_in("you forgot")


def test_comments_and_blank_lines_are_no_cues() -> None:
    assert not Cues.of(["# hello", "", "  ", "tea"]).found_in("hello")
    for none in ([], ["# only a comment"], ["", "  "]):
        with pytest.raises(ValueError, match="at least one phrase"):
            Cues.of(none)


@pytest.mark.parametrize("phrase", ["a.b", "what? (really)", "[x]", "c++", "a|b", "\\d"])
def test_a_phrase_is_no_pattern(phrase: str) -> None:
    cues = Cues.of([phrase])
    assert cues.found_in(f"so {phrase} it is")
    assert not cues.found_in("zzz 7")


def test_normalised() -> None:
    assert normalize("  Don’t -- you,  REMEMBER?! ") == "don't you remember"
