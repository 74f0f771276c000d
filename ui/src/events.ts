// What a receipt says in English sentences, in the words of the page.
import { fillIn, type Language } from "./words";

/** A sentence of a receipt, and how the page says it in English and in Chinese: `{}` are its parts. */
export type Saying = [RegExp, string, string];

const EVENTS: Saying[] = [
  [/^room was made: the prompt was expected to have ([\d,]+) tokens, more than (\d+%) of ([\d,]+) \(instructions, tools and expected recall ([\d,]+), recall notes ([\d,]+), messages in view ([\d,]+)\); (.*)$/,
    "Reason: the prompt would have had {} tokens, more than {} of {}. Of these, {} were instructions, tools and expected quotes, {} earlier quotes, {} messages in view. Result: {}.",
    "原因：提示词预计有 {} 词元，超过上限 {} / {}。其中指令、工具和预计的引用占 {}，较早的引用占 {}，视野中的消息占 {}。结果：{}。"],
  [/^split (m\d+)-(m\d+) into (.*)$/, "Messages {} to {} went into {}.", "消息 {} 到 {} 归入 {}。"],
  [/^split (m\d+) to (m\d+) off into (.*)$/, "Messages {} to {} became a topic of their own: {}.", "消息 {} 到 {} 成为单独的话题：{}。"],
  [/^moved (m\d+) to (m\d+) into (.*)$/, "Messages {} to {} were moved into {}.", "消息 {} 到 {} 移入 {}。"],
  [/^divided (.*) into (.*)$/, "{} grew too large and was divided into {}.", "{} 过大，拆分为 {}。"],
  [/^another writer came first: (\d+) messages of it were taken over$/, "Another turn ended first. Its {} messages were taken over.", "另一轮先结束，它的 {} 条消息已接在前面。"],
  [/^another writer came first: its changes were taken over$/, "Another turn ended first. Its changes were taken over.", "另一轮先结束，它的修改已接在前面。"],
  [/^an edit of another writer could not be made: (.*)$/, "An edit of another turn could not be made: {}", "另一轮的一处修改无法进行：{}"],
  [/^edited by the application: (.*) changed$/, "The application changed {}.", "应用修改了 {}。"],
  [/^edited by the application: out of view: (.*)$/, "The application took these messages out of view: {}.", "应用把这些消息移出了视野：{}。"],
  [/^(m\d+) was said anew, and out of view: (.*)$/, "{} was written again, so these messages are out of view: {}.", "{} 重新写过，这些消息因此移出视野：{}。"],
  [/^left (t\d+) as it is: (.*)$/, "{} was not changed: {}.", "{} 没有改动：{}。"],
  [/^message '(.*)' was left out: nothing can take in its form$/, "Message {} was left out: its form cannot be used.", "消息 {} 被略过：它的形式无法使用。"],
  [/^begun anew: an earlier conversation of (\d+) messages stays stored$/, "The conversation began again. An earlier one of {} messages is still stored.", "对话重新开始。之前的 {} 条消息仍然保存着。"],
  [/^the encoder is another one now: (\d+) older messages go by words alone as yet$/, "The encoder was changed. Until they are indexed again, {} older messages are found by their words only.", "编码器换过了。重新索引之前，{} 条较早的消息只能逐字查找。"],
  [/^the encoder failed, and what was said is found by its words alone: (.*)$/, "The encoder failed, so messages are found by their words only: {}", "编码器失败，消息只能逐字查找：{}"],
  [/^the graph's store cannot be read: (.*)$/, "The store cannot be read: {}", "无法读取存储：{}"],
  [/^damaged: (.*)$/, "Damaged: {}", "已损坏：{}"],
  [/^dropped the recall notes to make room$/, "Earlier quotes left the prompt to make room.", "较早的引用移出提示词，以腾出空间。"],
];
const PARTS: Saying[] = [
  [/\b(1) round moved into topics/, "{} round moved into topics", "{} 个来回归入话题"],
  [/(\d+) rounds moved into topics/, "{} rounds moved into topics", "{} 个来回归入话题"],
  [/\b(1) round left the view/, "{} round left the view", "{} 个来回移出视野"],
  [/(\d+) rounds left the view/, "{} rounds left the view", "{} 个来回移出视野"],
  [/recall notes were dropped/, "earlier quotes were dropped", "较早的引用被移除"],
];
const REASONS: Saying[] = [
  [/^the daily limit for this (\w+) is nearly used up$/, "Today's limit for this {} is nearly used up.", "今日限额（{}）即将用尽。"],
  [/^it was late in this turn$/, "It was too slow in this turn.", "它在本轮太慢。"],
  [/^it was late: it rests for (\d+) .*$/, "It was too slow, so it is not asked for {} more turns.", "它太慢，接下来 {} 轮不再询问。"],
  [/^it was late: it rests for this turn$/, "It was too slow, so it is not asked in this turn.", "它太慢，本轮不再询问。"],
  [/^(.*) was late in another role: it rests for this turn$/, "{} was too slow in another role, so it is not asked in this turn.", "{} 在别的角色中太慢，本轮不再询问。"],
  [/^(.*) was late in another role: it rests for (\d+) .*$/, "{} was too slow in another role, so it is not asked for {} more turns.", "{} 在别的角色中太慢，接下来 {} 轮不再询问。"],
  [/^the turn has waited ([\d.]+) s for other roles$/, "The turn had already waited {} s for other roles.", "本轮已为其他角色等待 {} 秒。"],
];

/** A text with the first of the sayings that it has, in a language. */
export function reword(text: string, sayings: Saying[], language: Language): string {
  for (const [form, en, zh] of sayings) {
    const found = form.exec(text);
    if (found) return text.replace(form, () => fillIn(language === "zh" ? zh : en, ...found.slice(1)));
  }
  return text;
}

export const tellReason = (text: string, language: Language) => reword(text, REASONS, language);
export const tellEvent = (text: string, language: Language) =>
  PARTS.reduce((told, part) => reword(told, [part], language), reword(text, EVENTS, language)).replace(/\bt\d+ “/g, "“");

/** True for what a turn says of the messages that it sorted into topics, and why. */
export const isOfSplit = (text: string) => /^(room was made|split m|dropped the recall|divided )/.test(text);
