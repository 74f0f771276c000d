"""Cues: each phrase fires in sentences that people write, and ordinary sentences do not."""

from __future__ import annotations

from importlib.resources import files

import pytest

from topicloom.prompts.loader import Cues, load_cues, normalize

AMNESIA = load_cues("amnesia")
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
    "you have forgotten": (
        "You have forgotten my name again.",
        "I see you have forgotten it",
        "What, you have forgotten the plan?",
    ),
    "you already forgot": (
        "You already forgot the address?",
        "So you already forgot.",
        "I think you already forgot what I like",
    ),
    "you're forgetting": (
        "You're forgetting that I am vegan.",
        "I think you're forgetting the deposit",
        "You’re forgetting something.",
    ),
    "how could you forget": (
        "How could you forget my birthday?",
        "But how could you forget!",
        "how could you forget the dog",
    ),
    "do you still remember": (
        "Do you still remember the name of the vet?",
        "The hotel in Porto, do you still remember?",
        "Do you still remember what we chose",
    ),
    "do you remember my": (
        "Do you remember my shoe size?",
        "do you remember my sister's name",
        "And do you remember my dog?",
    ),
    "i've already told you": (
        "I've already told you twice.",
        "I’ve already told you my budget",
        "But I've already told you!",
    ),
    "i have already told you": (
        "I have already told you the date.",
        "As I have already told you, no.",
        "I have already told you all of it",
    ),
    "i just told you": (
        "I just told you my name!",
        "But I just told you.",
        "I just told you that it is blue",
    ),
    "i keep telling you": (
        "I keep telling you it is a rental.",
        "Why do I keep telling you?",
        "I keep telling you the same thing",
    ),
    "didn't i tell you": (
        "Didn't I tell you that I moved?",
        "Didn’t I tell you already",
        "The code, didn't I tell you?",
    ),
    "didn't i say": (
        "Didn't I say no onions?",
        "Red, didn't I say?",
        "Didn't I say it was for six",
    ),
    "didn't i mention": (
        "Didn't I mention the stairs?",
        "Didn't I mention that Tom is away",
        "The cat, didn't I mention her?",
    ),
    "didn't i already": (
        "Didn't I already answer that?",
        "Didn't I already pick one?",
        "Wait, didn't I already give you the list",
    ),
    "haven't i told you": (
        "Haven't I told you about Leo?",
        "Haven’t I told you the price",
        "Why, haven't I told you?",
    ),
    "not what i said": (
        "That is not what I said.",
        "No, that's not what I said!",
        "This is not what I said about the colour",
    ),
    "as i was saying": (
        "As I was saying, the budget is 5k.",
        "So, as I was saying before lunch",
        "The roof, as I was saying, leaks.",
    ),
    "i mentioned ... last week": (
        "I mentioned this last week.",
        "The book I mentioned last week",
        "I mentioned the new job last week.",
    ),
    "i mentioned ... last time": (
        "I mentioned it last time.",
        "The lamp I mentioned last time, please.",
        "I mentioned my knee last time",
    ),
    "i mentioned ... yesterday": (
        "I mentioned it yesterday.",
        "The film I mentioned yesterday",
        "I mentioned the new tenant yesterday, no?",
    ),
    "i already gave you": (
        "I already gave you the number.",
        "But I already gave you my answer!",
        "The list I already gave you",
    ),
    "i've already given you": (
        "I've already given you the number.",
        "I’ve already given you all three",
        "The code? I've already given you that.",
    ),
    "i gave you ... before": (
        "I gave you the list before.",
        "The code I gave you before",
        "I gave you my new address before!",
    ),
    "i gave you ... earlier": (
        "I gave you the list earlier.",
        "Use the port I gave you earlier",
        "I gave you two names earlier.",
    ),
    "i gave you ... yesterday": (
        "But I gave you the code yesterday!",
        "The number I gave you yesterday",
        "I gave you my shopping list yesterday.",
    ),
    "i gave you ... last week": (
        "I gave you the figures last week.",
        "The recipe I gave you last week",
        "I gave you my measurements last week!",
    ),
    "i already sent you": (
        "I already sent you the report.",
        "The text I already sent you",
        "But I already sent you that",
    ),
    "didn't we agree": (
        "Didn't we agree on oak?",
        "Didn’t we agree that it is on Friday",
        "Blue, didn't we agree?",
    ),
    "didn't we already": (
        "Didn't we already do this?",
        "Didn't we already choose a name",
        "Wait, didn't we already cover it?",
    ),
    "didn't we decide": (
        "Didn't we decide on Rome?",
        "Didn't we decide to wait",
        "No nuts, didn't we decide?",
    ),
    "didn't we discuss": (
        "Didn't we discuss the roof?",
        "Didn't we discuss this in May",
        "The loan, didn't we discuss it?",
    ),
    "didn't we settle": (
        "Didn't we settle that?",
        "Didn't we settle on green",
        "The price, didn't we settle it?",
    ),
    "didn't we talk about": (
        "Didn't we talk about the visa?",
        "Didn't we talk about this on Monday",
        "Wait, didn't we talk about Leo?",
    ),
    "haven't we already": (
        "Haven't we already picked a date?",
        "Haven't we already been here",
        "Haven’t we already done this part?",
    ),
    "i thought we agreed": (
        "I thought we agreed on oak.",
        "But I thought we agreed!",
        "I thought we agreed that it stays",
    ),
    "we already agreed": (
        "We already agreed on the price.",
        "But we already agreed!",
        "What we already agreed stays",
    ),
    "we already decided": (
        "We already decided on oak.",
        "We already decided that, no?",
        "I thought we already decided",
    ),
    "what we agreed": (
        "That is not what we agreed.",
        "Do what we agreed on.",
        "What we agreed about the garden",
    ),
    "as we agreed": (
        "Do it as we agreed.",
        "As we agreed, no sugar.",
        "Twelve guests, as we agreed",
    ),
    "we agreed on ... remember": (
        "We agreed on oak, remember?",
        "We agreed on the blue one, remember",
        "We agreed on six, remember?",
    ),
    "like last time": (
        "Like last time please.",
        "Make the soup like last time.",
        "Format it like last time",
    ),
    "same as last time": (
        "Same as last time.",
        "The same as last time, please.",
        "Do I pay the same as last time",
    ),
    "you told me last": (
        "You told me last week that it works.",
        "The trick you told me last time",
        "You told me last month to wait",
    ),
    "you told me yesterday": (
        "You told me yesterday to wait.",
        "What you told me yesterday was good",
        "You told me yesterday, no?",
    ),
    "you said last time": (
        "You said last time that it was free.",
        "That is not what you said last time",
        "You said last time to prune in March.",
    ),
    "you said yesterday": (
        "You said yesterday that it is fine.",
        "That is not what you said yesterday",
        "You said yesterday it would rain.",
    ),
    "you suggested last": (
        "The book you suggested last week",
        "You suggested last time to use oil.",
        "You suggested last month that I rest",
    ),
    "you recommended last": (
        "The hotel you recommended last month",
        "You recommended last time a red wine.",
        "You recommended last week to wait",
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
    "你都忘了": ("你都忘了吧", "我说的话你都忘了", "你都忘了我叫什么"),
    "怎么又忘": ("怎么又忘了", "你怎么又忘了我不吃辣", "怎么又忘记地址了"),
    "还记得咱": ("还记得咱们选的颜色吗", "你还记得咱俩定的价吗", "还记得咱家的猫吗"),
    "还记不记得": ("还记不记得我的车", "你还记不记得那个牌子", "密码还记不记得"),
    "记得我说": ("记得我说的那家店吗", "你记得我说什么了吗", "记得我说要靠窗吧"),
    "我明明说": ("我明明说过", "我明明说要两间房", "这个我明明说了"),
    "我明明告诉": ("我明明告诉你了", "我明明告诉过你地址", "密码我明明告诉你的"),
    "我明明跟你": ("我明明跟你讲了", "我明明跟你说是周三", "价格我明明跟你说过"),
    "我明明给": ("我明明给你密码了", "我明明给过你地址", "清单我明明给你了"),
    "我都说过": ("我都说过了", "我都说过不要香菜", "这些我都说过"),
    "我都告诉你": ("我都告诉你了", "我都告诉你几次了", "地址我都告诉你啦"),
    "我已经说过": ("我已经说过了", "我已经说过不去", "这点我已经说过"),
    "我已经告诉你": ("我已经告诉你了", "我已经告诉你我的生日", "密码我已经告诉你"),
    "我已经跟你说": ("我已经跟你说了", "我已经跟你说过预算", "这事我已经跟你说了"),
    "我刚说过": ("我刚说过了", "我刚说过是周三", "这个我刚说过"),
    "我刚跟你说": ("我刚跟你说了", "我刚跟你说我姓王", "地址我刚跟你说过"),
    "我不是给过你": ("我不是给过你吗", "我不是给过你地址了", "密码我不是给过你了嘛"),
    "我不是提过": ("我不是提过吗", "我不是提过我妈妈", "预算我不是提过了"),
    "我给过你": ("我给过你密码", "那个号码我给过你", "我给过你一份清单"),
    "我之前告诉": ("我之前告诉过你", "我之前告诉你的地址", "密码我之前告诉你了"),
    "我之前给你": ("我之前给你的清单", "我之前给你发的菜谱", "地址我之前给你了"),
    "我前面说": ("我前面说过了", "按我前面说的做", "我前面说的预算"),
    "我上次提": ("我上次提到的书", "我上次提的要求", "这个我上次提过"),
    "我上次跟你": ("我上次跟你说的店", "我上次跟你讲了", "我上次跟你聊到我妈妈"),
    "我上次告诉": ("我上次告诉你了", "我上次告诉你的尺码", "密码我上次告诉过你"),
    "我上次给你": ("我上次给你的清单", "我上次给你发过", "地址我上次给你了"),
    "跟你说过": ("这事上周跟你说过", "我好像跟你说过", "跟你说过我不吃鱼"),
    "跟你讲过": ("我上周跟你讲过", "这个故事跟你讲过", "跟你讲过我老板吧"),
    "跟你提过": ("我早跟你提过", "跟你提过的那本书", "好像跟你提过我弟弟"),
    "跟你聊过": ("我上周跟你聊过", "跟你聊过的那部电影", "好像跟你聊过装修"),
    "告诉过你": ("早就告诉过你", "这个告诉过你了", "地址告诉过你两次"),
    "不是说好": ("不是说好周六吗", "咱们不是说好了", "价格不是说好的吗"),
    "我们说好的": ("上回我们说好的", "这是我们说好的", "我们说好的价钱呢"),
    "我们说过": ("我们说过这个", "这事我们说过吧", "我们说过要用橡木"),
    "我们谈过": ("我们谈过价格", "这件事我们谈过", "上周我们谈过合同"),
    "我们商量过": ("我们商量过这个", "颜色我们商量过", "我们商量过用橡木"),
    "咱们聊过": ("咱们聊过这个", "咱们聊过我的工作", "这部电影咱们聊过"),
    "咱们说过": ("咱们说过价格", "这事咱们说过", "咱们说过不加糖"),
    "咱们讨论过": ("咱们讨论过方案", "这个咱们讨论过", "咱们讨论过三种办法"),
    "咱俩聊过": ("咱俩聊过的", "这事咱俩聊过", "咱俩聊过旅行"),
    "咱俩说过": ("咱俩说过这个", "咱俩说过价钱", "密码咱俩说过"),
    "上次我们聊": ("上次我们聊的书", "上次我们聊到一半", "上次我们聊什么了"),
    "上次我们说": ("上次我们说到哪了", "上次我们说的店", "上次我们说好的价"),
    "上次我们讨论": ("上次我们讨论的方案", "上次我们讨论到第几章", "上次我们讨论过"),
    "上次跟你说": ("上次跟你说的店", "上次跟你说过了", "我妈上次跟你说的事"),
    "上回我们说": ("上回我们说好的", "上回我们说到哪儿", "上回我们说的牌子"),
    "上回我们聊": ("上回我们聊的书", "上回我们聊到哪儿", "上回我们聊过吧"),
    "上回咱": ("上回咱们定的价", "上回咱俩说的店", "上回咱聊到哪了"),
    "上回跟你": ("上回跟你说的店", "上回跟你讲过", "上回跟你聊的电影"),
    "你不是说过": ("你不是说过可以吗", "这个你不是说过了", "你不是说过要等三天"),
    "你上次说": ("你上次说的办法", "你上次说要等三天", "你上次说可以"),
    "你之前说": ("你之前说可以", "你之前说的办法", "你之前说要剪枝"),
    "你上次推荐": ("你上次推荐的书", "你上次推荐了一家店", "你上次推荐的是哪个"),
    "你之前推荐": ("你之前推荐的书", "你之前推荐过一家店", "你之前推荐的是哪个"),
    "跟上次一样": ("跟上次一样就行", "格式跟上次一样", "跟上次一样减糖"),
    "照上次": ("照上次的做", "就照上次那样", "照上次的格式写"),
    "说了好几遍": ("我说了好几遍了", "说了好几遍不要葱", "都说了好几遍"),
    "要我说几遍": ("要我说几遍你才懂", "这事要我说几遍", "还要我说几遍"),
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
    "Don't worry if you forget something on the list.",
    "She asked and I said it was fine.",
    "We agreed on monthly video calls, but how can I make them work?",
    "My wife and I agreed on oak.",
    "Do you remember the first man on the moon?",
    "Remember the milk we need for tomorrow.",
    "Remember that I am allergic to nuts.",
    "As I was walking home it began to rain.",
    "He already gave me the number.",
    "I gave her the code yesterday.",
    "I mentioned my last job in the letter.",
    "The last time was better than the first.",
    "Didn't we have fun?",
    "Haven't you eaten yet?",
    "What was decided at Yalta?",
    "You told a joke.",
    "They settled that in court.",
    "I keep telling myself to rest.",
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
    "他明明说会来的。",
    "我明明很累，却睡不着。",
    "我给他发过邮件。",
    "记得我们明天要开会。",
    "你还记得它是哪年发行的吗？",
    "老师说了一遍。",
    "上回考试很难。",
    "上回我们去爬山，下雨了。",
    "我已经把邮件发给老板了。",
    "说好话不花钱。",
    "他们商量过了。",
    "朋友推荐了一家店。",
    "我刚到家。",
    "这本小说讲过很多道理。",
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
    cues = load_cues("amnesia", ("te lo dije", "已经...讲了"))
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
