import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Clock } from 'sluicegate'
import { allPolicies } from 'sluicegate-config/domains.js'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { Access } from 'sluicegate-server/dist/access.js'
import { Engine } from 'sluicegate-server/dist/engine/engine.js'
import { RateLimits } from 'sluicegate-server/dist/envoy/rate-limits.js'
import { router } from 'sluicegate-server/dist/protocols/http/router.js'
import { changeRoutes, decisionRoutes } from 'sluicegate-server/dist/protocols/http/verbs.js'
import type { SessionContext } from 'sluicegate-server/dist/protocols/resp/command.js'
import { ALL_COMMANDS } from 'sluicegate-server/dist/protocols/resp/command-table.js'
import { Session } from 'sluicegate-server/dist/protocols/resp/session.js'
import type { Random } from '../../index.js'
import { commandBytes, repliesIn } from '../../servers/resp.js'
import { sessionContext } from '../running-resp.js'
import { aGuard } from '../running-service.js'
import { damaged, fuzzInput, fuzzRounds, inPieces, pieceSizes } from './fuzz-input.js'

const POLICIES = `policies:
  api: { algorithm: token-bucket, limit: 10, window: 1m }
  slots: { algorithm: concurrency, limit: 3, ttl: 5s }
  both: { all-of: [{ name: x, algorithm: gcra, limit: 5, window: 1s }, { name: y, algorithm: fixed-window, limit: 30, window: 1h }] }
`
const RULES = `domain: web
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 5 } }
  - { key: path, value: /a*, rate_limit: { unit: second, requests_per_unit: 3 } }
`
export const PATHS = [
  '/v1/take',
  '/v1/peek',
  '/v1/batch',
  '/v1/reserve',
  '/v1/settle',
  '/v1/cancel',
  '/v1/release',
  '/v1/heartbeat',
  '/v1/refund',
  '/v1/penalize',
  '/v1/block',
  '/v1/reset',
  '/json',
]
/** Ids of reservations and permits are random. */
const ID = /"(reservation|permit)":"[^"]*"/g

/**
 * Sends `inputs` random bodies of JSON, with faults in it, to the routes of three services each: whole, byte by byte and in random pieces. All
 * must answer the same: JSON with a status below 500, or 503 where too many reservations are held.
 *
 * @throws with the seed and the number of the input that failed.
 */
export async function fuzzJson(seed: number, inputs: number): Promise<void> {
  for (const { random, number, subjects } of fuzzRounds(seed, inputs, serviceOf)) {
    const path = random.pick(PATHS)
    const text = Buffer.from(randomJson(random, path))
    const input = random.chance(0.2) ? damaged(random, text) : text
    await fuzzInput(seed, number, Buffer.concat([Buffer.from(`${path} `), input]), async () => {
      const sizes = pieceSizes(input, () => random.magnitude(1, 64))
      const [whole, ...others] = await Promise.all(subjects.map(({ handle }, i) => answerTo(handle, path, input, sizes[i] as () => number)))
      for (const other of others) assert.equal(other, whole, 'another answer in other pieces')
    })
  }
}

function serviceOf(clock: Clock): { engine: Engine; handle: RequestListener } {
  const { domains } = parseConfig(RULES)
  const engine = new Engine([...allPolicies(parseConfig(POLICIES)), ...domains.flatMap(({ policies }) => policies)], { clock })
  const limits = new RateLimits(engine, domains, undefined, () => clock.nowMs())
  const { handle } = router(new Map([...decisionRoutes(engine, limits, new Access([])), ...changeRoutes(engine)]), aGuard())
  return { engine, handle }
}

/** Status and body. */
function answerTo(handle: RequestListener, path: string, input: Buffer, pieceBytes: () => number): Promise<string> {
  return new Promise((resolve, reject) => {
    const headers = { host: 'a', 'content-type': 'application/json' }
    const facts = { method: 'POST', url: path, httpVersion: '1.1', headers, rawHeaders: Object.entries(headers).flat(), complete: true }
    const request = Object.assign(new EventEmitter(), facts) as unknown as IncomingMessage
    let status = 0
    const response = {
      req: request,
      headersSent: false,
      destroyed: false,
      writeHead(code: number) {
        status = code
        this.headersSent = true
      },
      end(body = '') {
        try {
          resolve(checked(status, String(body)))
        } catch (error) {
          reject(error)
        }
      },
      destroy: () => reject(new Error('the connection was closed without an answer')),
    }
    handle(request, response as unknown as ServerResponse & { req: IncomingMessage })
    inPieces(input, pieceBytes, (piece) => request.emit('data', piece))
    request.emit('end')
  })
}

function checked(status: number, body: string): string {
  assert.ok((status >= 200 && status < 500) || status === 503, `${status} ${body}`)
  if (status !== 204) assert.equal(typeof JSON.parse(body), 'object', body)
  return `${status} ${body.replace(ID, '"$1":""')}`
}

/** JSON for a path, some of it with faults. */
export function randomJson(random: Random, path: string): string {
  if (random.chance(0.05)) return jsonText(random, randomValue(random, 3))
  const body = path === '/json' ? randomLimitRequest(random) : path === '/v1/batch' ? randomBatch(random) : randomAsk(random)
  return jsonText(random, body)
}

/** Pairs in place of an object: a name may be there twice. */
type Pairs = [name: string, value: unknown][]

function object(pairs: Pairs): { readonly pairs: Pairs } {
  return { pairs }
}

function randomAsk(random: Random): unknown {
  const pairs: Pairs = [
    ['policy', random.chance(0.9) ? random.pick(['api', 'slots', 'both']) : randomValue(random, 1)],
    ['key', random.chance(0.7) ? random.pick(['a', 'b', ['a', 'b'], ['a']]) : randomValue(random, 2)],
  ]
  const more: Pairs = [
    ['cost', random.integer(-1, 12)],
    ['ttlMs', random.magnitude(1, 1e7)],
    ['reservation', 'x'.repeat(random.integer(0, 40))],
    ['permit', 'x'.repeat(random.integer(0, 40))],
    ['forMs', random.magnitude(1, 1e12)],
    ['priority', 'critical'],
    ['peek', random.chance(0.5)],
    ['__proto__', 1],
    ['constructor', {}],
  ]
  for (const [name, value] of more) if (random.chance(0.12)) pairs.push([name, random.chance(0.8) ? value : randomValue(random, 2)])
  if (random.chance(0.05)) pairs.push(random.pick(pairs))
  return object(pairs)
}

function randomBatch(random: Random): unknown {
  const length = random.chance(0.99) ? random.integer(0, 4) : random.integer(99, 102)
  const pairs: Pairs = [['takes', Array.from({ length }, () => (random.chance(0.95) ? randomAsk(random) : randomValue(random, 1)))]]
  if (random.chance(0.5)) pairs.push(['all', random.chance(0.9) ? random.chance(0.5) : randomValue(random, 1)])
  return object(pairs)
}

function randomLimitRequest(random: Random): unknown {
  const entry = (): unknown =>
    object([
      ['key', random.chance(0.9) ? random.pick(['user', 'path']) : randomValue(random, 1)],
      ['value', random.chance(0.9) ? random.pick(['alice', '/ab', '']) : randomValue(random, 1)],
    ])
  const descriptor = (): unknown => {
    const pairs: Pairs = [['entries', Array.from({ length: random.integer(0, 2) }, entry)]]
    if (random.chance(0.1))
      pairs.push([
        'limit',
        object([
          ['requests_per_unit', random.magnitude(1, 2 ** 33)],
          ['unit', random.pick(['SECOND', 'x', 3])],
        ]),
      ])
    if (random.chance(0.1)) pairs.push(['hits_addend', random.pick([0, 3, '7', -1, 2 ** 60])])
    if (random.chance(0.1)) pairs.push(['is_negative_hits', true])
    return object(pairs)
  }
  return object([
    ['domain', random.chance(0.9) ? 'web' : randomValue(random, 1)],
    ['descriptors', random.chance(0.9) ? Array.from({ length: random.integer(0, 3) }, descriptor) : randomValue(random, 2)],
    ...((random.chance(0.2) ? [[random.pick(['hits_addend', 'hitsAddend']), random.magnitude(1, 2 ** 40)]] : []) as Pairs),
  ])
}

function randomValue(random: Random, depth: number): unknown {
  const kind = random.integer(0, depth > 0 ? 9 : 7)
  if (kind === 0) return null
  if (kind === 1) return random.chance(0.5)
  if (kind === 2) return random.pick([0, -0, 1.5, -1, 2 ** 53, 1e308, 1e-7])
  if (kind < 6)
    return Array.from({ length: random.magnitude(1, random.chance(0.02) ? 2_000 : 10) - 1 }, () => randomLetter(random)).join('')
  if (kind < 8) return String(random.integer(-2, 20))
  const length = random.integer(0, 3)
  if (kind === 8) return Array.from({ length }, () => randomValue(random, depth - 1))
  return object(Array.from({ length }, () => [randomLetter(random), randomValue(random, depth - 1)]))
}

function randomLetter(random: Random): string {
  return random.pick(['a', 'key', '\0', '"', '\\', '\n', 'é', '漢', '😀', '\uD800', '\uFEFF', ' '])
}

/** With spaces anywhere, and some letters escaped. */
function jsonText(random: Random, value: unknown): string {
  const space = random.chance(0.1) ? random.pick([' ', '\n', '\t', '\u00a0']) : ''
  const textOf = (each: unknown): string => {
    if (typeof each === 'string' && random.chance(0.1))
      return `"${Array.from(each, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"`
    if (typeof each !== 'object' || each === null) return JSON.stringify(each)
    if (Array.isArray(each)) return `[${space}${each.map(textOf).join(`${space},`)}]`
    const { pairs = [] } = each as { pairs?: Pairs }
    return `{${space}${pairs.map(([name, member]) => `${textOf(name)}${space}:${textOf(member)}`).join(`,${space}`)}}`
  }
  return random.chance(0.005) ? '['.repeat(random.magnitude(1, 10_000)) : textOf(value)
}

/** The memory that unanswered input may take: a command of 64 KiB, twice, and a piece. */
const MAX_HELD_BYTES = 262_144

/**
 * Feeds `inputs` random inputs, which have the structure of RESP with faults in it, to three sessions each: whole, byte by byte and in
 * random pieces. All must give the same replies, well formed, and hold bounded memory.
 *
 * @throws with the seed and the number of the input that failed.
 */
export function fuzzResp(seed: number, inputs: number): void {
  for (const { random, number, subjects } of fuzzRounds(seed, inputs, contextOf)) {
    const input = randomInput(random)
    const pieces = [() => input.length, () => 1, () => random.magnitude(1, 64)]
    try {
      const [whole, ...others] = subjects.map((context, i) => replies(context, input, pieces[i] as () => number))
      for (const other of others) assert.ok(whole?.equals(other), 'other replies in other pieces')
      repliesIn(whole as Buffer)
    } catch (error) {
      throw new Error(`seed ${seed}, input ${number}: ${JSON.stringify(input.toString('latin1'))}`, { cause: error })
    }
  }
}

/** How many full keys a table still counts depends on its random secret, and so would the replies of `INFO` and `DBSIZE`. */
function contextOf(clock: Clock): SessionContext {
  const context = sessionContext({ clock })
  const stats = context.engine.callRates.stats()
  context.engine.callRates.stats = () => stats
  return context
}

/** All replies to an input that arrives in pieces. */
function replies(context: SessionContext, input: Buffer, pieceBytes: () => number): Buffer {
  const session = new Session(1, context, () => undefined)
  const written: Buffer[] = []
  for (let at = 0; at < input.length; ) {
    const end = Math.min(at + pieceBytes(), input.length)
    session.push(Buffer.from(input.subarray(at, end)))
    at = end
    for (;;) {
      const waiting = session.run()
      if (session.readyBytes > 0) written.push(session.takeReplies())
      assert.ok(session.heldBytes <= Math.max(MAX_HELD_BYTES, input.length), `${session.heldBytes} bytes are held`)
      if (waiting === 'end') return Buffer.concat(written)
      if (waiting === 'input') break
      assert.notEqual(waiting, 'store')
    }
  }
  return Buffer.concat(written)
}

/** Commands, some of them with faults. */
export function randomInput(random: Random): Buffer {
  const parts = Array.from({ length: random.integer(1, 4) }, () => randomPart(random))
  const input = Buffer.concat(parts)
  return random.chance(0.3) ? damaged(random, input) : input
}

function randomPart(random: Random): Buffer {
  const args = randomArguments(random)
  if (random.chance(0.6)) return commandBytes(...args)
  if (random.chance(0.5))
    return Buffer.from(
      `${args.map((arg) => inlineText(random, arg)).join(random.pick([' ', '  ', '\t']))}${random.pick(['\r\n', '\n'])}`,
      'latin1',
    )
  const numbers = [
    '0',
    '-1',
    '1',
    '2',
    '10',
    '1024',
    '1025',
    '-',
    '',
    '+1',
    '01',
    ' 1',
    '16384',
    '16385',
    '4294967296',
    '99999999999999999999999',
  ]
  const type = random.pick(['*', '$', ':', '+', '-', '%', '_', '!', '\0'])
  const lineEnd = random.pick(['\r\n', '\r\n', '\n', '\r', ''])
  return Buffer.concat([
    Buffer.from(`${type}${random.pick(numbers)}${lineEnd}`),
    random.chance(0.5) ? commandBytes(...args) : Buffer.alloc(0),
  ])
}

function randomArguments(random: Random): Buffer[] {
  const name = Buffer.from(randomCase(random, random.pick(ALL_COMMANDS).name))
  const known: readonly string[][] = [
    [
      'CL.THROTTLE',
      randomKey(random),
      String(random.magnitude(1, 1e9)),
      String(random.magnitude(1, 1e9)),
      String(random.magnitude(1, 1e6)),
    ],
    ['CL.THROTTLE', randomKey(random), '15', '30', '60', String(random.integer(-1, 20))],
    ['SG.TAKE', 'api', randomKey(random), String(random.integer(0, 12))],
    ['SG.PEEK', 'api', randomKey(random)],
    ['HELLO', random.pick(['2', '3', '4'])],
    ['COMMAND', 'DOCS'],
    ['CLIENT', random.pick(['ID', 'GETNAME', 'SETNAME', 'INFO']), 'x'],
  ]
  if (random.chance(0.5)) return random.pick(known).map((arg) => Buffer.from(arg, 'latin1'))
  return [name, ...Array.from({ length: random.magnitude(1, 8) - 1 }, () => randomBytes(random))]
}

function randomKey(random: Random): string {
  return random.chance(0.8) ? random.pick(['a', 'b', 'c']) : randomBytes(random).toString('latin1')
}

function randomBytes(random: Random): Buffer {
  if (random.chance(0.4))
    return Buffer.from(
      random.pick(['1', '-1', '0', 'api', 'GET', 'save', '9223372036854775807', '9223372036854775808', '\r\n', '"', '\\x']),
    )
  return Buffer.from(Array.from({ length: random.magnitude(1, random.chance(0.02) ? 3_000 : 20) - 1 }, () => random.integer(0, 255)))
}

function randomCase(random: Random, name: string): string {
  return Array.from(name, (letter) => (random.chance(0.5) ? letter.toUpperCase() : letter)).join('')
}

function inlineText(random: Random, arg: Buffer): string {
  const text = arg.toString('latin1')
  if (random.chance(0.7)) return text
  return random.chance(0.5)
    ? `"${text.replace(/[^ -!#-[\]-~]/g, (byte) => `\\x${byte.charCodeAt(0).toString(16).padStart(2, '0')}`)}"`
    : `'${text}'`
}
