// Written by bin/generate. Change ui/answers.py or changes.py in topicloom_app.
/** The reason why a turn did not quote a message. */
export interface Absence {
  message: string;
  turn: number;
  step: "later" | "unanswered" | "removed" | "in_view" | "quoted" | "quoted_before" | "needs_nothing" | "archived" | "no_budget" | "passed_over" | "reader_failed" | "asleep" | "not_found";
  topic: string;
  place: number;
}
/** Thresholds and counts of activation; the defaults are the design's values. */
export interface ActivationPolicy {
  window: number;
  base: number;
  step: number;
  sleep_share: number;
  floor: number;
  usual: number;
  ceiling: number;
}
/** One call of a role. */
export interface Call {
  role: string;
  model: string;
  topic: string | null;
  began: number;
  seconds: number;
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  repeated: number | null;
  failure: string | null;
  skipped: boolean;
  remarks: string[];
}
/** A change to topics or facts, by the name of what `Memory` does. */
export type Change = Rename | Move | Split | Merge | Pin | PutAway | CorrectFact | ForgetFact | Undo;
/** Says a fact in other words; without a text, confirms it. */
export interface CorrectFact {
  do: "correct_fact";
  key: string;
  text?: string;
}
/** Something picked, as a receipt keeps it: where it is, not what it says. */
export interface CuratedItem {
  id: string;
  kind: string;
  title: string;
}
/** Older messages are embedded anew, with another encoder. */
export interface EmbeddingEvent {
  type: "embedding";
  left: number;
}
/** Nothing more comes. */
export interface EndEvent {
  type: "end";
  stopped: boolean;
}
/** Something failed. */
export interface ErrorEvent {
  type: "error";
  error: string;
}
/** A fact as it is stored. */
export interface Fact {
  text: string;
  messages: string[];
  at: string;
  replaces: string[];
  said: Said[];
  since: string;
  until: string;
  quote: string;
  origin: string;
  held: boolean;
}
/** Removes a fact, but not the messages that it rests on. */
export interface ForgetFact {
  do: "forget_fact";
  key: string;
}
/** What an export holds, as `ImportSummary.describe` has it. */
export interface FoundExport {
  conversations: number;
  recorded: number;
  there_already: number;
  formats: Record<string, number>;
  first: string;
  last: string;
  names: string[];
  left_out: Record<string, number>;
  not_understood: NotUnderstood[];
  dated_by_neighbours: number;
  dated_today: number;
}
/** Messages of an export were recorded. */
export interface ImportedEvent {
  type: "imported";
  session: string;
  done: number;
  all: number;
}
/** How far the index of a session is. */
export interface IndexState {
  left: number;
}
/** A change that was made to topics. */
export interface MemoryChange {
  id: string;
  author: string;
  time: string;
  event: string;
  undone: boolean;
  undoes: string;
}
/** Merges a topic into another, which keeps its name. */
export interface Merge {
  do: "merge";
  topic: string;
  into: string;
}
/** A point in time that the session can be shown at: the end of a turn. */
export interface Moment {
  id: string;
  parent: string;
  turn: number;
  count: number;
  time: string;
}
/** Moves messages into a topic, with their whole rounds: `m12-m15, m20`. */
export interface Move {
  do: "move";
  topic: string;
  messages: string;
}
/** Something of an export that could not be read. */
export interface NotUnderstood {
  what: string;
  count: number;
  example: string;
}
export type PageEvent = TextEvent | TopicsEvent | ReadEvent | QuotedEvent | SplitEvent | SearchingEvent | RememberingEvent | RestartedEvent | EmbeddingEvent | ImportedEvent | ReceiptEvent | EndEvent | ErrorEvent;
/** Keeps a topic active, so that it is read for every reply; or no longer. */
export interface Pin {
  do: "pin";
  topic: string;
  pinned: boolean;
}
/** What a turn was planned to be. It keeps all fields of the plan, as the domain wrote them. */
export interface PlannedTurn {
  kind: string;
  focus: string | null;
  goal: string;
  [other: string]: unknown;
}
/** A message of a prompt. */
export interface PromptMessage {
  role: string;
  text: string;
}
/** A topic that unsplit messages would open now. */
export interface ProvisionalTopic {
  name: string;
  first: string;
  count: number;
}
/** Puts a topic into the archive, or takes it out. */
export interface PutAway {
  do: "archive" | "restore";
  topic: string;
}
/** Messages were quoted. */
export interface QuotedEvent {
  type: "quoted";
  quotes: string[];
}
/** A topic was read. */
export interface ReadEvent {
  type: "read";
  topic: string;
  score: number;
}
/** What models that read topics changed in what was quoted for a turn. */
export interface ReadingEffect {
  added: string[];
  kept_out: string[];
  summaries: number;
}
/** The turn is over. */
export interface ReceiptEvent {
  type: "receipt";
  user: string;
}
/** All topics are searched, as the user says that something was forgotten. */
export interface RememberingEvent {
  type: "remembering";
  query: string;
}
/** Gives a topic a name, which no review and no split changes. */
export interface Rename {
  do: "rename";
  topic: string;
  name: string;
}
/** Turns with readings, replayed. */
export interface ReplayedTurns {
  turns: number;
  read: number;
  tokens: number;
  quoted: number;
  missed: number;
}
/** What thresholds of activation would have done: those in force, and others. */
export interface Replays {
  in_force: [ActivationPolicy, ReplayedTurns];
  policy: [ActivationPolicy, ReplayedTurns];
}
/** What was streamed of the reply is thrown away. */
export interface RestartedEvent {
  type: "reply_restarted";
}
export type Said = [string, string, string];
/** One search through the index window, by the model or for an amnesia cue. */
export interface Search {
  query: string;
  when: string | null;
  days: [string, string] | null;
  archived: boolean;
  found: string[];
  listed: string[];
  candidates: string[];
  scope: SearchScope;
  reason: string;
  media: string[];
}
/** What a search looked at, and what it did not. */
export interface SearchScope {
  briefs: number;
  read: number;
  unsearched: number;
  other_days: boolean;
  missed: string;
}
/** The model looks for topics. */
export interface SearchingEvent {
  type: "searching";
  query: string;
  when: string | null;
}
/** What was removed for good, or would be. */
export interface ShownForgotten {
  messages: ShownMessage[];
  topics: string[];
  facts: Record<string, Fact>;
  left: string[];
}
/** A message that a prompt had, with the sentence that says most of what the reply says. */
export interface ShownGround {
  id: string;
  seq: number;
  role: string;
  label: string;
  time: string;
  text: string;
  whole: boolean;
  media: number;
  topic: string;
  relevance: number | null;
  place: "quoted" | "quoted_before" | "in_view";
  says: string;
}
/** A message with the topic that it is in. */
export interface ShownMessage {
  id: string;
  seq: number;
  role: string;
  label: string;
  time: string;
  text: string;
  whole: boolean;
  media: number;
  topic: string;
  relevance: number | null;
}
/** The user whose session it is. */
export interface ShownPerson {
  user: string;
  scope: string;
  threads: Record<string, string>;
  spans: ShownSpan[];
}
/** A receipt with what a person wants to know beside it. */
export interface ShownReceipt {
  turn: number;
  user: string;
  started: string;
  seconds: number;
  scores: Record<string, number>;
  quoted: TopicNote[];
  other_threads: ThreadQuote[];
  curated: CuratedItem[];
  crowded_out: string[];
  reading: ReadingEffect | null;
  idle: boolean;
  about: Record<string, number>;
  view: number;
  noted: number;
  roster: string | null;
  active: string[];
  activated: string[];
  deactivated: string[];
  sections: Record<string, number>;
  window: number;
  split: string[];
  searches: Search[];
  abandoned: number;
  calls: Call[];
  steps: StepTime[];
  unasked: Record<string, string>;
  limits: Record<string, number>;
  plan: PlannedTurn | null;
  edits: unknown[][];
  edit_errors: string[];
  events: string[];
  costs: (number | null)[];
  topics: Record<string, TopicThen>;
}
/** A session, and what the page has to know beside it. */
export interface ShownSession {
  name: string;
  count: number;
  tail: number;
  turn: number;
  owner: string;
  model: string;
  editing: boolean;
  sessions: string[];
}
/** A fact of a user for as long as it held. */
export interface ShownSpan {
  key: string;
  fact: string;
  since: string;
  until: string;
  at: string;
  thread: string;
  scope: string;
  messages: string[];
  quote: string;
}
/** The unsplit messages, and how far the window is from being split. */
export interface ShownTail {
  topics: ProvisionalTopic[];
  full: number;
  splits_at: number;
}
/** A topic in the list of all. */
export interface ShownTopic {
  id: string;
  name: string;
  full_name: string;
  state: "active" | "dormant" | "archived" | "divided" | "merged";
  brief: string;
  summary: string;
  count: number;
  first_at: string;
  last_at: string;
  parent: string | null;
  importance: number | null;
  by_hand: ("named" | "sorted" | "pinned" | "restored")[];
  loose: boolean;
  relevance: number | null;
}
/** What a turn was asked and replied, and what the reply rests on. */
export interface ShownTurn {
  asked: ShownMessage;
  reply: ShownMessage | null;
  grounds: ShownGround[];
}
/** Makes a new topic of messages of another, with their whole rounds. */
export interface Split {
  do: "split";
  topic: string;
  messages: string;
  name: string;
}
/** Messages begin to move into topics. */
export interface SplitEvent {
  type: "split";
  rounds: number;
  first: number;
  last: number;
}
export type StepTime = [string, number, number];
/** A part of the reply. */
export interface TextEvent {
  type: "text";
  text: string;
}
/** A message of another thread of the user, or a fact of the user. */
export interface ThreadQuote {
  thread: string;
  message: string;
  topic: string;
  fact: string;
  since: string;
  day: string;
}
/** One topic's part of a recall note. */
export interface TopicNote {
  topic: string;
  name: string;
  score: number;
  quotes: string[];
  partial: string[];
  excerpts: Record<string, [number, number][]>;
  summary: string;
}
/** A topic as a turn left it. */
export interface TopicThen {
  name: string;
  count: number;
  fill: number;
}
/** Topics whose readers begin, or that messages moved into. */
export interface TopicsEvent {
  type: "reading" | "moved";
  topics: string[];
}
/** What a turn did, for a line over the days. */
export interface TurnMark {
  message: string;
  day: string;
  quoted: Record<string, number>;
  activated: string[];
  split: string[];
  searched: boolean;
}
/** Undoes a change: the one that is named, or the newest of a person. */
export interface Undo {
  do: "undo";
  change?: string;
}
