// What the server answers in English, in Chinese: problems, and changes that people and reviews made.
import { reword, type Saying } from "./events";
import type { Language } from "./words";

/** A sentence of the server, and its Chinese. In English it stays as it is. */
type Told = [RegExp, string];

const PROBLEMS: Told[] = [
  [/^the page is read-only: turn on editing first$/, "现在是只读：先允许修改。"],
  [/^nothing can be imported: there is no message with a text$/, "没有可以导入的内容：没有一条消息有文字。"],
  [/^nothing can be imported: (.*)$/s, "没有可以导入的内容：{}"],
  [/^there is no session '(.*?)'.*$/s, "没有会话“{}”。"],
  [/^there is no moment .* of session '(.*)'$/, "会话“{}”没有这个时刻。"],
  [/^session '(.*?)' has no topic '(.*?)'.*$/s, "会话“{}”里没有话题 {}。"],
  [/^session '(.*?)' has no message '(.*?)'.*$/s, "会话“{}”里没有消息 {}。"],
  [/^session '(.*?)' has no turn (\d+) \(there: 1 to (\d+)\)$/, "会话“{}”里没有第 {} 轮（现有 1 到 {}）。"],
  [/^a turn of session '(.*?)' is not finished: finish it first$/, "会话“{}”有一轮还没有结束：请先让它结束。"],
  [/^a turn of this session is not finished: finish it before you purge$/, "这个会话有一轮还没有结束：请先让它结束，再删除。"],
  [/^nothing to remove: name a topic that holds messages, or messages$/, "没有可删的：请选一个有消息的话题，或者选消息。"],
  [/^a topic needs a name$/, "话题要有名称。"],
  [/^(m\d+) is not in (t\d+)$/, "{} 不在 {} 里。"],
  [/^(m\d+) is in no topic yet$/, "{} 还没有归入话题。"],
  [/^(t\d+) is called “(.*)”$/, "{} 已经叫“{}”。"],
  [/^there is no (t\d+)$/, "没有话题 {}。"],
  [/^there is no fact .*$/, "没有这条事实。"],
  [/^(t\d+) has changed since$/, "{} 在这期间有了变化。"],
  [/^(t\d+) is active$/, "{} 是活跃的。"],
  [/^(t\d+) is open$/, "{} 没有归档。"],
  [/^(t\d+) is archived$/, "{} 已归档。"],
  [/^(t\d+) is divided$/, "{} 已分开。"],
  [/^(t\d+) is merged$/, "{} 已合并到别的话题。"],
  [/^(t\d+) is \w+, not archived$/, "{} 没有归档。"],
  [/^nothing would change$/, "不会有任何变化。"],
  [/^'(.*?)' ends before it begins.*$/, "{} 的结尾在开头之前。"],
  [/^there is no such (?:session|turn)$/, "没有这个会话或这一轮。"],
  [/^others change session '(.*?)' all the time: try again$/, "会话“{}”一直在被别处修改：请再试一次。"],
  [/^another writer's turn of session '(.*?)' ended.*$/s, "会话“{}”的这一轮还没有结束，另一个写入者的一轮先结束了。说过的话都保留着。"],
  [/^session '(.*?)' is in use.*$/s, "会话“{}”正在被使用。"],
  [/^a request has ([\d,]+) bytes at most$/, "一次最多发送 {} 字节。"],
  [/^(t\d+) cannot be merged into itself$/, "{} 不能合并到自己。"],
  [/^there is nothing to undo.*$/, "没有可以撤销的修改。"],
  [/^this cannot be undone, (.*?): (.*)$/s, "这项修改不能撤销。{}：{}"],
  [/^The model's server does not accept this server's key \((.*)\)\. Your own.*$/s, "模型的服务器不接受这台服务器的密钥（{}）。请让管理这台服务器的人设置有效的密钥。"],
  [/^The model's server does not know the model \((.*)\)\. Whoever.*$/s, "模型的服务器不认识这个模型（{}）。请让管理这台服务器的人换一个模型。"],
  [/^The model is busy or its quota is used up \((.*)\)\. Try again in (\S+) seconds\.$/s, "模型正忙，或额度已用完（{}）。请在 {} 秒后重试。"],
  [/^The model is busy or its quota is used up \((.*)\)\. Try again later\.$/s, "模型正忙，或额度已用完（{}）。请稍后重试。"],
  [/^The model's server refuses this request \((.*)\)\. Sending.*$/s, "模型的服务器拒绝了这个请求（{}）。原样再发没有用，请先修改。"],
  [/^The model gave no reply \((.*)\)\. Your message is kept; send it again\.$/s, "模型没有回复（{}）。你的消息已经保存，请再发一次。"],
  [/^something went wrong here; the server's log says what$/, "出错了。原因写在服务器的日志里。"],
  [/^older checkpoints of the thread: (\w+) cannot remove them; do so by its own means$/, "较早的检查点还在：{} 不能删除它们，请用它自己的办法删除。"],
  [/^free pages of the checkpoints' file, which another process uses$/, "检查点文件的空闲页还没有清除，因为另一个进程正在使用它。"],
];
const CHANGES: Told[] = [
  [/merged (t\d+ “.*”) into (t\d+ “.*”) and archived it/, "把{}合并到{}，并将其归档"],
  [/merged (t\d+ “.*”) into (t\d+ “.*”)/, "把{}合并到{}"],
  [/archived (t\d+ “.*”)/, "归档{}"],
  [/reviewed (t\d+ “.*”)/, "整理{}"],
  [/split (m\d+) to (m\d+) off into (t\d+ “.*”)/, "把 {} 到 {} 拆成新话题{}"],
  [/split (m\d+) off into (t\d+ “.*”)/, "把 {} 拆成新话题{}"],
  [/restored (t\d+ “.*”)/, "恢复{}"],
  [/moved (m\d+) to (m\d+) into (t\d+ “.*”)/, "把 {} 到 {} 移到{}"],
  [/moved (m\d+) into (t\d+ “.*”)/, "把 {} 移到{}"],
  [/renamed (t\d+ “.*”) to “(.*)”/, "把{}改名为“{}”"],
  [/changed (t\d+ “.*”)/, "修改{}"],
  [/unpinned (t\d+ “.*”)/, "取消置顶{}"],
  [/pinned (t\d+ “.*”)/, "置顶{}"],
];
const CAUSES: Told[] = [
  [/(^|: )undone: /, "{}撤销："],
  [/they are about the same thing \(likeness ([\d.]+)\)/, "说的是同一件事（相似度 {}）"],
  [/not spoken of for (\d+) days/, "{} 天没有说起"],
  [/asked once and over/, "问过一次，已经结束"],
  [/of little importance \(([\d.]+)\)/, "不重要（{}）"],
  [/unrelated to what is being talked about/, "与正在谈的无关"],
];

const inChinese = (text: string, told: Told[]) => reword(text, told.map(([form, zh]): Saying => [form, zh, zh]), "zh");

/** A problem that the server names, in the language of the page. */
export const tellProblem = (text: string, language: Language) => language === "zh" ? inChinese(text, PROBLEMS) : text;

/** A change of topics, in the language of the page. */
export const tellChange = (text: string, language: Language) =>
  language === "zh" ? CAUSES.reduce((told, cause) => inChinese(told, [cause]), inChinese(text, CHANGES)) : text;
