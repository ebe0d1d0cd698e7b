import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { everyNth, longTest, until } from 'sluicegate-testkit'
import { readExposition, seriesValue } from 'sluicegate-testkit/service/exposition.js'
import { replaced, runNginx } from 'sluicegate-testkit/service/running-service.js'
import { announcement, type Cleanup, sluicegate } from 'sluicegate-testkit/service/sluicegate-process.js'

const EXAMPLE = fileURLToPath(new URL('../../../examples/model-tokens', import.meta.url))
const LIMIT = 10_000
type Protocol = 'http' | 'grpc'

interface Call {
  /** Ends the model's answer. */
  answer(usedTokens: number): void
  refuse(): void
  readonly response: ServerResponse
}

/** One for each test: the tests of one protocol and one time share what runs, and what one has spent would be missing from another. */
const USERS = ['anna', 'ben', 'carl', 'dora', 'emil', 'frida', 'gus'] as const

type Model = Awaited<ReturnType<typeof startModel>>
const running = new Map<string, Promise<Model>>()
const ends: (() => unknown)[] = []
after(async () => {
  for (const end of ends.reverse()) await end()
})

async function runModel(protocol: Protocol, env: Readonly<Record<string, string>> = {}): Promise<Model> {
  const name = JSON.stringify([protocol, env])
  const model = running.get(name) ?? startModel({ after: (end) => void ends.push(end as () => unknown) }, protocol, env)
  running.set(name, model)
  ;(await model).calls.length = 0
  return await model
}

/** nginx, the service, the app and a model whose answers the test gives; the files are those of the example, with more users. */
async function startModel(t: Cleanup, protocol: Protocol, env: Readonly<Record<string, string>>) {
  const folder = mkdtempSync(join(tmpdir(), 'sluicegate-model-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  const { service, grpc } = await startService(t, folder)
  const calls: Call[] = []
  const model = createServer((request, response) => {
    request.resume().once('end', () => calls.push(heldCall(response)))
  }).listen(0, '127.0.0.1')
  await once(model, 'listening')
  t.after(() => model.close().closeAllConnections())
  const app = await startApp(t, {
    SLUICEGATE_URL: service,
    MODEL_URL: `http://127.0.0.1:${(model.address() as AddressInfo).port}`,
    ...(protocol === 'grpc' && { SLUICEGATE_GRPC: grpc }),
    ...env,
  })
  const { url } = await runNginx(
    t,
    readFileSync(join(EXAMPLE, 'nginx.conf'), 'utf8'),
    {
      '127.0.0.1:8080': new URL(service).host,
      '127.0.0.1:3000': new URL(app.url).host,
      '"Bearer key-of-bob" bob;': ['bob', ...USERS].map((user) => `"Bearer key-of-${user}" ${user};`).join(' '),
    },
    ['', (status) => status === 401],
  )
  return {
    calls,
    appOutput: app.output,
    /** A request of `max` tokens beside those of the prompt, which is one. */
    complete: (user: string, max: number, signal?: AbortSignal): Promise<Response> =>
      fetch(url, {
        method: 'POST',
        headers: { Authorization: `Bearer key-of-${user}` },
        body: JSON.stringify({ prompt: 'four', max_tokens: max }),
        ...(signal && { signal }),
      }),
    remaining: async (user: string): Promise<number> => {
      const answer = await fetch(`${service}/v1/peek?policy=model-tokens&key=${user}`)
      return ((await answer.json()) as { remaining: number }).remaining
    },
    metric: async (name: string): Promise<number> =>
      seriesValue(readExposition(await (await fetch(`${service}/metrics`)).text()), name, { policy: 'model-tokens' }),
  }
}

function heldCall(response: ServerResponse): Call {
  return {
    response,
    answer: (total_tokens) => void response.end(JSON.stringify({ text: 'an answer', usage: { total_tokens } })),
    refuse: () => void response.writeHead(500).end(),
  }
}

/** The windows of the example end at midnight; those of the test do not end. */
async function startService(t: Cleanup, folder: string): Promise<{ service: string; grpc: string }> {
  const config = join(folder, 'config')
  cpSync(join(EXAMPLE, 'config'), config, { recursive: true })
  const file = join(config, 'sluicegate.yaml')
  writeFileSync(file, replaced(readFileSync(file, 'utf8'), { 'window: day': 'window: 366d' }))
  const child = sluicegate(t, 'serve', '--config', config, '--http', '127.0.0.1:0', '--grpc', '127.0.0.1:0')
  const { url, text } = await announcement(child)
  return { service: url, grpc: /grpc:\/\/(\S+)/.exec(text)?.[1] ?? assert.fail(text) }
}

async function startApp(t: Cleanup, env: Readonly<Record<string, string>>): Promise<{ url: string; output(): string }> {
  const child = spawn(process.execPath, [join(EXAMPLE, 'app.mjs')], { env: { ...process.env, PORT: '0', ...env } })
  t.after(() => child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  await until('the app listens', () => / listens on \S+\n/.test(output))
  return { url: / listens on (\S+)\n/.exec(output)?.[1] ?? assert.fail(output), output: () => output }
}

// Each in a short run over one of the protocols, by turns.
for (const [i, protocol] of (['http', 'grpc'] as const).entries()) {
  everyNth(i + 0, 2)(`over ${protocol} what an answer may use is held while the model works, and what it has used is charged`, async () => {
    const { calls, complete, remaining } = await runModel(protocol)
    const first = complete('anna', 2_999)
    await until('the model is called', () => calls.length === 1)
    assert.equal(await remaining('anna'), LIMIT - 3_000)
    calls[0]?.answer(1_234)
    const answer = await first
    assert.deepEqual([answer.status, await answer.json()], [200, { text: 'an answer', usage: { total_tokens: 1_234 } }])
    assert.equal(await remaining('anna'), LIMIT - 1_234)
    assert.equal(await remaining('bob'), LIMIT)
  })

  longTest(`over ${protocol} requests at once reach the model as far as what they may use fits, and the others do not`, async () => {
    const { calls, complete, remaining } = await runModel(protocol)
    const sent = Array.from({ length: 15 }, () => complete('ben', 999))
    const statuses: number[] = []
    for (const answer of sent) void answer.then(({ status }) => statuses.push(status))
    await until('10 calls of the model, 5 denials', () => calls.length === 10 && statuses.length === 5)
    assert.deepEqual(statuses, [429, 429, 429, 429, 429])
    assert.equal(await remaining('ben'), 0)
    for (const [i, call] of calls.entries()) call.answer(100 + i)
    await Promise.all(sent)
    assert.equal(calls.length, 10)
    assert.equal(await remaining('ben'), LIMIT - 1_045)
  })

  everyNth(i + 2, 2)(
    `over ${protocol} a model that uses more than was held is charged for it, and the next request is denied before the model`,
    async () => {
      const { calls, complete, remaining } = await runModel(protocol)
      const first = complete('carl', 99)
      await until('the model is called', () => calls.length === 1)
      calls[0]?.answer(LIMIT - 50)
      assert.equal((await first).status, 200)
      assert.equal(await remaining('carl'), 50)
      const denied = await complete('carl', 99)
      assert.equal(denied.status, 429)
      assert.equal(denied.headers.has('retry-after'), true)
      assert.equal(calls.length, 1)
      assert.equal(await remaining('carl'), 50)
      // What fits passes.
      const last = complete('carl', 49)
      await until('the model is called', () => calls.length === 2)
      calls[1]?.answer(50)
      assert.equal((await last).status, 200)
      assert.equal(await remaining('carl'), 0)
    },
  )

  longTest(`over ${protocol} a client that gives up ends the call of the model, and pays for its prompt`, async () => {
    const { calls, complete, remaining, metric } = await runModel(protocol)
    const gone = new AbortController()
    const given = complete('dora', 2_999, gone.signal)
    await until('the model is called', () => calls.length === 1)
    gone.abort()
    await assert.rejects(given)
    await until('the app ends its call', () => calls[0]?.response.destroyed === true)
    await until('nothing is held', async () => (await metric('sluicegate_holds')) === 0)
    assert.equal(await remaining('dora'), LIMIT - 1)
  })

  longTest(`over ${protocol} an answer long after the time of its hold is delivered, and the app says that it is not counted`, async () => {
    const { calls, complete, remaining, metric, appOutput } = await runModel(protocol, { TTL_MS: '10' })
    const late = complete('emil', 999)
    await until('the model is called', () => calls.length === 1)
    await until('nothing is held', async () => (await metric('sluicegate_holds')) === 0)
    calls[0]?.answer(10)
    assert.equal((await late).status, 200)
    await until('the app says so', () => appOutput().includes('has ended before its close'))
    assert.equal(await remaining('emil'), LIMIT)
  })

  everyNth(i + 5, 2)(`over ${protocol} a model that refuses costs nothing, and a request above the limit does not reach it`, async () => {
    const { calls, complete, remaining } = await runModel(protocol)
    const refused = complete('frida', 999)
    await until('the model is called', () => calls.length === 1)
    calls[0]?.refuse()
    assert.equal((await refused).status, 502)
    assert.equal(await remaining('frida'), LIMIT)
    assert.equal((await complete('frida', LIMIT)).status, 429)
    assert.equal(calls.length, 1)
    assert.equal(await remaining('frida'), LIMIT)
  })
}

test('nginx limits requests before the app holds tokens, and refuses those without a key', async () => {
  const { calls, complete, remaining } = await runModel('http')
  assert.equal((await complete('mallory', 1)).status, 401)
  // 20 at once, then one a second. Those that pass are denied by the app: they are above the limit of tokens.
  const sent = await Promise.all(Array.from({ length: 60 }, () => complete('gus', LIMIT)))
  assert.deepEqual(new Set(sent.map(({ status }) => status)), new Set([429]))
  const ofNginx = sent.filter(({ headers }) => headers.get('content-type') === 'application/problem+json')
  assert.ok(ofNginx.length > 0 && ofNginx.length <= 40, `${ofNginx.length} denied by nginx`)
  for (const { headers } of ofNginx) assert.ok(Number(headers.get('retry-after')) > 0)
  assert.equal(calls.length, 0)
  assert.equal(await remaining('gus'), LIMIT)
})
