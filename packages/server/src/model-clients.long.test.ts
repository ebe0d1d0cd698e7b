import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { before, type TestContext, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { createLimiter, fixedWindow, type Limiter, levels, manualClock, tokenBucket } from 'sluicegate'
import { prices, type Usage } from 'sluicegate/prices'
import { until } from 'sluicegate-testkit'
import { installFolder } from 'sluicegate-testkit/installed-folder.js'

// Holds around answers of language models, as the clients of their vendors receive them, from a server that stands in for those.

const FOLDER = fileURLToPath(new URL('../../../tools/model-clients/', import.meta.url))
const WORDS = 20
const INPUT = 100
/** What the server says that it used: more than it streamed, as hidden thoughts are. */
const TRUE_OUTPUT = 30
const price = prices({ per: 1_000, models: { model: { input: 3_000, cached: 300, output: 15_000 } } })

/** How an answer ends: with what it used, without, or before its end. */
type Ending = 'usage' | 'silent' | 'breaks'

/** A piece of an answer, in the form that all clients are brought to. */
interface Piece {
  readonly text?: string
  readonly usage?: Usage
}

before(() => installFolder(FOLDER))

interface StandIn {
  readonly url: string
  /** Answers that their client gave up. */
  readonly ended: () => number
}

async function standIn(t: TestContext): Promise<StandIn> {
  let ended = 0
  const server = createServer((request, response) => {
    response.on('close', () => {
      if (!response.writableFinished) ended++
    })
    void answer(request, response)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, ended: () => ended }
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let body = ''
  for await (const chunk of request) body += String(chunk)
  const { stop, messages } = { stop: undefined, ...(JSON.parse(body) as { stop?: unknown; messages: unknown }) }
  const ending = (JSON.stringify([stop, messages]).match(/usage|silent|breaks/)?.[0] ?? 'usage') as Ending
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const events = request.url?.endsWith('/messages') ? anthropicEvents(ending) : openaiEvents(ending)
  let words = 0
  for (const event of events) {
    if (ending === 'breaks' && words === WORDS / 2) return void response.destroy()
    if (event.includes('"w ')) words++
    response.write(event)
    // A model writes word by word.
    await new Promise((resolve) => setImmediate(resolve))
  }
  response.end()
}

function* openaiEvents(ending: Ending): Generator<string> {
  const chunk = (choices: object[], usage?: object): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'model', choices, ...(usage && { usage }) })}\n\n`
  for (let i = 0; i < WORDS; i++) yield chunk([{ index: 0, delta: { role: 'assistant', content: 'w ' }, finish_reason: null }])
  yield chunk([{ index: 0, delta: {}, finish_reason: 'stop' }])
  const details = { prompt_tokens_details: { cached_tokens: 40 } }
  if (ending === 'usage')
    yield chunk([], { prompt_tokens: INPUT, completion_tokens: TRUE_OUTPUT, total_tokens: INPUT + TRUE_OUTPUT, ...details })
  yield 'data: [DONE]\n\n'
}

function* anthropicEvents(ending: Ending): Generator<string> {
  const event = (type: string, more: object): string => `event: ${type}\ndata: ${JSON.stringify({ type, ...more })}\n\n`
  const usage = ending === 'usage' ? { input_tokens: INPUT - 40, cache_read_input_tokens: 40, output_tokens: 1 } : {}
  const message = {
    id: 'm',
    type: 'message',
    role: 'assistant',
    content: [],
    model: 'model',
    stop_reason: null,
    stop_sequence: null,
    usage,
  }
  yield event('message_start', { message })
  yield event('content_block_start', { index: 0, content_block: { type: 'text', text: '' } })
  for (let i = 0; i < WORDS; i++) yield event('content_block_delta', { index: 0, delta: { type: 'text_delta', text: 'w ' } })
  yield event('content_block_stop', { index: 0 })
  const end = ending === 'usage' ? { usage: { output_tokens: TRUE_OUTPUT } } : { usage: {} }
  yield event('message_delta', { delta: { stop_reason: 'end_turn', stop_sequence: null }, ...end })
  yield event('message_stop', {})
}

/** Packages of a folder of their own: their types are not here. */
async function installed(name: string): Promise<Record<string, never>> {
  return (await import(pathToFileURL(createRequire(FOLDER).resolve(name)).href)) as Record<string, never>
}

/** Asks for an answer, and brings its pieces to one form. */
type Ask = (url: string, ending: Ending, signal: AbortSignal) => AsyncIterable<Piece>

async function* openai(url: string, ending: Ending, signal: AbortSignal): AsyncGenerator<Piece> {
  const { OpenAI } = (await installed('openai')) as unknown as { OpenAI: new (options: object) => OpenaiClient }
  const client = new OpenAI({ apiKey: 'none', baseURL: `${url}/v1`, maxRetries: 0 })
  const request = { model: 'model', stream: true, stream_options: { include_usage: true }, messages: [{ role: 'user', content: ending }] }
  for await (const { choices, usage } of await client.chat.completions.create(request, { signal })) {
    const cached = usage?.prompt_tokens_details?.cached_tokens ?? 0
    if (usage) yield { usage: { model: 'model', input: usage.prompt_tokens - cached, cached, output: usage.completion_tokens } }
    const text = choices[0]?.delta.content
    if (text) yield { text }
  }
}

interface OpenaiClient {
  readonly chat: { readonly completions: { create(request: object, options: object): Promise<AsyncIterable<OpenaiChunk>> } }
}
interface OpenaiChunk {
  readonly choices: readonly { readonly delta: { readonly content?: string | null } }[]
  readonly usage?: { prompt_tokens: number; completion_tokens: number; prompt_tokens_details?: { cached_tokens?: number } } | null
}

async function* anthropic(url: string, ending: Ending, signal: AbortSignal): AsyncGenerator<Piece> {
  const { Anthropic } = (await installed('@anthropic-ai/sdk')) as unknown as { Anthropic: new (options: object) => AnthropicClient }
  const client = new Anthropic({ apiKey: 'none', baseURL: url, maxRetries: 0 })
  const request = { model: 'model', max_tokens: 100, stream: true, messages: [{ role: 'user', content: ending }] }
  let read: { input_tokens?: number; cache_read_input_tokens?: number | null } = {}
  for await (const event of await client.messages.create(request, { signal })) {
    if (event.type === 'message_start') read = event.message?.usage ?? {}
    if (event.delta?.text) yield { text: event.delta.text }
    const output = event.type === 'message_delta' ? event.usage?.output_tokens : undefined
    if (output !== undefined)
      yield { usage: { model: 'model', input: read.input_tokens ?? 0, cached: read.cache_read_input_tokens ?? 0, output } }
  }
}

interface AnthropicClient {
  readonly messages: { create(request: object, options: object): Promise<AsyncIterable<AnthropicEvent>> }
}
interface AnthropicEvent {
  readonly type: string
  readonly message?: { readonly usage?: { input_tokens?: number; cache_read_input_tokens?: number | null } }
  readonly delta?: { readonly text?: string }
  readonly usage?: { readonly output_tokens?: number }
}

async function* ai(url: string, ending: Ending, signal: AbortSignal): AsyncGenerator<Piece> {
  const { streamText } = (await installed('ai')) as unknown as {
    streamText(options: object): { readonly fullStream: AsyncIterable<AiPart> }
  }
  const { createOpenAICompatible } = (await installed('@ai-sdk/openai-compatible')) as unknown as {
    createOpenAICompatible(options: object): (model: string) => unknown
  }
  const provider = createOpenAICompatible({ name: 'stand-in', baseURL: `${url}/v1`, includeUsage: true })
  const { fullStream } = streamText({
    model: provider('model'),
    prompt: ending,
    maxRetries: 0,
    abortSignal: signal,
    onError: () => undefined,
  })
  for await (const part of fullStream) {
    if (part.type === 'error') throw part.error
    if (part.type === 'text-delta' && part.text) yield { text: part.text }
    const { inputTokens, outputTokens, cachedInputTokens: cached = 0 } = part.type === 'finish' ? (part.totalUsage ?? {}) : {}
    if (inputTokens !== undefined && outputTokens !== undefined)
      yield { usage: { model: 'model', input: inputTokens - cached, cached, output: outputTokens } }
  }
}

interface AiPart {
  readonly type: string
  readonly text?: string
  readonly error?: unknown
  readonly totalUsage?: { readonly inputTokens?: number; readonly outputTokens?: number; readonly cachedInputTokens?: number }
}

const CLIENTS: Readonly<Record<string, Ask>> = { openai, '@anthropic-ai/sdk': anthropic, ai }

interface Outcome {
  readonly words: number
  readonly used: number
  readonly isCut: boolean
  readonly isBroken: boolean
}

/** What an application writes around a client. */
async function metered(spend: Limiter, ask: Ask, url: string, ending: Ending): Promise<Outcome> {
  const stop = new AbortController()
  const input = { model: 'model', input: INPUT }
  const work = spend.open({ org: 'acme', user: 'ada' }, { most: price.cost({ ...input, output: 100 }) })
  assert.ok(work.allowed)
  let words = 0
  let isCut = !work.add(price.cost(input))
  let isBroken = false
  let usage: Usage | undefined
  try {
    for await (const piece of ask(url, ending, stop.signal)) {
      usage = piece.usage ?? usage
      if (piece.text === undefined) continue
      const before = price.cost({ ...input, output: words })
      isCut = !work.add(price.cost({ ...input, output: words + 1 }) - before)
      if (isCut) break
      words++
    }
  } catch {
    isBroken = true
  } finally {
    stop.abort()
    work.close(usage && price.cost(usage))
  }
  return { words, used: work.used, isCut, isBroken }
}

function budget(limit: number): Limiter {
  const clock = manualClock(0)
  return createLimiter(levels({ org: fixedWindow({ limit: 1_000_000, window: 'month' }), user: tokenBucket({ limit, window: '30d' }) }), {
    clock,
  })
}

function spentOf(limiter: Limiter): (number | undefined)[] {
  const { parts = [] } = limiter.peek({ org: 'acme', user: 'ada' })
  return parts.map(({ limit, remaining }) => limit - remaining)
}

const STREAMED = price.cost({ model: 'model', input: INPUT, output: WORDS })

for (const [name, ask] of Object.entries(CLIENTS)) {
  test(`${name}: what the provider says at the end is what an answer costs, on every level`, async (t) => {
    const { url } = await standIn(t)
    const spend = budget(5_000)
    const { words, used, isCut, isBroken } = await metered(spend, ask, url, 'usage')
    assert.deepEqual([words, isCut, isBroken], [WORDS, false, false])
    // The cached part of the input was added at the full price, and what was added does not come back.
    const trueCost = price.cost({ model: 'model', input: INPUT - 40, cached: 40, output: TRUE_OUTPUT })
    assert.equal(used, Math.max(trueCost, STREAMED))
    assert.deepEqual(spentOf(spend), [used, used])
  })

  test(`${name}: an answer that breaks off, or never says what it used, costs what was added`, async (t) => {
    const { url } = await standIn(t)
    const spend = budget(5_000)
    const broken = await metered(spend, ask, url, 'breaks')
    assert.deepEqual([broken.isBroken, broken.used], [true, price.cost({ model: 'model', input: INPUT, output: broken.words })])
    assert.ok(broken.words <= WORDS / 2)
    const silent = await metered(spend, ask, url, 'silent')
    assert.deepEqual([silent.words, silent.used, silent.isBroken], [WORDS, STREAMED, false])
    assert.deepEqual(spentOf(spend), [broken.used + silent.used, broken.used + silent.used])
  })

  test(`${name}: where the budget ends the answer ends, at the provider too, and nothing is spent beyond it`, async (t) => {
    const { url, ended } = await standIn(t)
    const spend = budget(price.cost({ model: 'model', input: INPUT, output: 5 }))
    const { words, used, isCut } = await metered(spend, ask, url, 'usage')
    assert.deepEqual([words, isCut, used], [5, true, price.cost({ model: 'model', input: INPUT, output: 5 })])
    assert.deepEqual(spentOf(spend), [used, used])
    assert.ok(ended() <= 1)
    await until('the provider knows', async () => ended() === 1 || words < WORDS)
  })
}
