/**
 * The talk of `client_talk.py`, held by libraries of JavaScript: `node client_talk.mjs CLIENT URL`.
 *
 * Each client has `say(history, text, {image, tools})`, which gives the history with the answer, its
 * text and the id of the call that it ends with; `stream(history, text)`, the history with the
 * question and the pieces of the answer; `addReply`; and `give(history, call, result)`.
 */
const [MODEL, KEY] = ["topicloom", "none"];
const HEADERS = { "X-Chat-Id": "c1" };
const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBgAAAABQABh6FO1AAAAABJRU5ErkJggg==";
const SCHEMA = { type: "object", properties: { city: { type: "string" } } };
const TOOL = { name: "weather_of", description: "The weather of a city.", parameters: SCHEMA };

async function hold(client) {
  const [, givenUp] = await client.say([], "Begin.");
  let [history, begun] = await client.say([], "Begin."); // the first answer once more
  if (begun === givenUp) throw new Error("it was not answered once more");
  await client.say(history, "Go left.");
  let edited, counted, goneOn, said, call, told, seen;
  [history, edited] = await client.say(history, "Go right."); // an edit
  [history, counted] = await streamed(client, history, "Count slowly.", true); // stopped
  [history, goneOn] = await streamed(client, history, "Go on.", false);
  [history, said, call] = await client.say(history, "What is the weather?", { tools: true });
  [history, told] = await client.give(history, call, "rain, 4°");
  [history, seen] = await client.say(history, "What is on it?", { image: PIXEL });
  return [
    ["user", "Begin."], ["assistant", begun],
    ["user", "Go right."], ["assistant", edited],
    ["user", "Count slowly."], ["assistant", counted],
    ["user", "Go on."], ["assistant", goneOn],
    ["user", "What is the weather?"], ["assistant", said],
    ["tool", "rain, 4°"], ["assistant", told],
    ["user", "What is on it?"], ["assistant", seen],
  ];
}

async function streamed(client, history, text, stop) {
  const stopping = new AbortController();
  const [asked, pieces] = await client.stream(history, text, stopping.signal);
  let read = "";
  try {
    for await (const piece of pieces) {
      read += piece;
      if (stop && read) {
        stopping.abort();
        break;
      }
    }
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  }
  return [client.addReply(asked, read), read];
}

/** openai-node's chat completions. */
async function openaiChat(url) {
  const { default: OpenAI } = await import("openai");
  const client = new OpenAI({ baseURL: url, apiKey: KEY, defaultHeaders: HEADERS, maxRetries: 0 });
  const answer = async (messages, tools) => {
    const given = tools ? { tools: [{ type: "function", function: TOOL }] } : {};
    const asked = await client.chat.completions.create({ model: MODEL, messages, ...given });
    const { message } = asked.choices[0];
    return [[...messages, message], message.content ?? "", message.tool_calls?.[0].id];
  };
  return {
    say: (history, text, { image, tools } = {}) => {
      const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${image}` } };
      const content = image ? [{ type: "text", text }, picture] : text;
      return answer([...history, { role: "user", content }], tools);
    },
    stream: async (history, text, signal) => {
      const messages = [...history, { role: "user", content: text }];
      const parts = client.chat.completions.stream({ model: MODEL, messages }, { signal });
      return [messages, read(parts, (part) => part.choices[0]?.delta.content)];
    },
    addReply: (history, text) => [...history, { role: "assistant", content: text }],
    give: (history, call, result) =>
      answer([...history, { role: "tool", tool_call_id: call, content: result }], true),
  };
}

/** openai-node's Responses; with all that was said, or by `previous_response_id`. */
async function openaiResponses(url, byId) {
  const { default: OpenAI } = await import("openai");
  const client = new OpenAI({ baseURL: url, apiKey: KEY, defaultHeaders: HEADERS, maxRetries: 0 });
  const ask = (items) => {
    const at = items.findLastIndex((item) => item.response);
    const given = byId && at >= 0 ? { previous_response_id: items[at].response } : {};
    return { model: MODEL, input: items.slice(byId ? at + 1 : 0).filter((i) => !i.response), ...given };
  };
  const answer = async (items, tools) => {
    const given = tools ? { tools: [{ type: "function", strict: false, ...TOOL }] } : {};
    const response = await client.responses.create({ ...ask(items), ...given });
    const call = response.output.find((item) => item.type === "function_call");
    const marked = [...items, ...response.output, { response: response.id }];
    return [marked, response.output_text, call?.call_id];
  };
  return {
    say: (history, text, { image, tools } = {}) => {
      const content = [{ type: "input_text", text }];
      if (image) content.push({ type: "input_image", image_url: `data:image/png;base64,${image}` });
      return answer([...history, { role: "user", content }], tools);
    },
    stream: async (history, text, signal) => {
      const items = [...history, { role: "user", content: text }];
      const events = await client.responses.create({ ...ask(items), stream: true }, { signal });
      const heard = (e) => (e.type === "response.output_text.delta" ? e.delta : "");
      return [items, read(events, heard)];
    },
    addReply: (history, text) => [...history, { role: "assistant", content: text }],
    give: (history, call, result) =>
      answer([...history, { type: "function_call_output", call_id: call, output: result }], true),
  };
}

/** A model of Vercel's AI SDK. */
async function aiSdk(model) {
  const { generateText, streamText, tool, jsonSchema } = await import("ai");
  const weather = tool({ description: TOOL.description, inputSchema: jsonSchema(SCHEMA) });
  const answer = async (messages, tools) => {
    const given = tools ? { tools: { weather_of: weather } } : {};
    const made = await generateText({ model, messages, maxRetries: 0, ...given });
    return [[...messages, ...made.response.messages], made.text, made.toolCalls[0]?.toolCallId];
  };
  return {
    say: (history, text, { image, tools } = {}) => {
      const picture = { type: "file", mediaType: "image/png", data: image };
      const content = image ? [{ type: "text", text }, picture] : text;
      return answer([...history, { role: "user", content }], tools);
    },
    stream: async (history, text, abortSignal) => {
      const messages = [...history, { role: "user", content: text }];
      const made = streamText({ model, messages, abortSignal, maxRetries: 0, onError: () => {} });
      return [messages, made.textStream];
    },
    addReply: (history, text) => [...history, { role: "assistant", content: text }],
    give: (history, call, result) => {
      const output = { type: "text", value: result };
      const part = { type: "tool-result", toolCallId: call, toolName: TOOL.name, output };
      return answer([...history, { role: "tool", content: [part] }], true);
    },
  };
}

async function* read(parts, text) {
  for await (const part of parts) yield text(part) ?? "";
}

const given = (url) => ({ baseURL: url, apiKey: KEY, headers: HEADERS });
const CLIENTS = {
  "openai-chat": openaiChat,
  "openai-responses": (url) => openaiResponses(url, false),
  "openai-previous": (url) => openaiResponses(url, true),
  "ai-sdk": async (url) => aiSdk((await import("@ai-sdk/openai")).createOpenAI(given(url))(MODEL)),
  "ai-sdk-chat": async (url) =>
    aiSdk((await import("@ai-sdk/openai")).createOpenAI(given(url)).chat(MODEL)),
  "ai-sdk-compatible": async (url) => {
    const { createOpenAICompatible } = await import("@ai-sdk/openai-compatible");
    return aiSdk(createOpenAICompatible({ name: "served", ...given(url) })(MODEL));
  },
  "ai-sdk-anthropic": async (url) =>
    aiSdk((await import("@ai-sdk/anthropic")).createAnthropic(given(url))(MODEL)),
};

const [name, url] = process.argv.slice(2);
console.log(JSON.stringify(await hold(await CLIENTS[name](url))));
