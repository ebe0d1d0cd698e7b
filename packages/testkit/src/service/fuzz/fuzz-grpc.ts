import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import type { OutgoingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { fromBinary } from '@bufbuild/protobuf'
import type { Clock } from 'sluicegate'
import { parseConfig } from 'sluicegate-config/read-config.js'
import { Access } from 'sluicegate-server/dist/access.js'
import { Engine } from 'sluicegate-server/dist/engine/engine.js'
import { RateLimits } from 'sluicegate-server/dist/envoy/rate-limits.js'
import { statusOf } from 'sluicegate-server/dist/protocols/grpc/grpc-service.js'
import { RateLimitResponseSchema } from 'sluicegate-server/dist/protocols/grpc/messages/envoy/service/ratelimit/v3/rls.gen.js'
import type { UnaryMethod } from 'sluicegate-server/dist/protocols/grpc/method.js'
import { shouldRateLimit } from 'sluicegate-server/dist/protocols/grpc/rls.js'
import type { Turns } from 'sluicegate-server/dist/protocols/grpc/session-turns.js'
import { GrpcError } from 'sluicegate-server/dist/protocols/grpc/status.js'
import { StreamAnswer } from 'sluicegate-server/dist/protocols/grpc/stream-answer.js'
import { UnaryCalls } from 'sluicegate-server/dist/protocols/grpc/unary-calls.js'
import type { Random } from 'sluicegate-testkit'
import { aGuard } from '../running-service.js'
import { damaged, fuzzInput, fuzzRounds, inPieces, pieceSizes } from './fuzz-input.js'

const MAX_MESSAGE_BYTES = 4_096
const RULES = `domain: web
descriptors:
  - { key: user, rate_limit: { unit: minute, requests_per_unit: 5 } }
  - { key: path, value: /a*, share_threshold: true, rate_limit: { unit: second, requests_per_unit: 3, name: paths } }
  - { key: tenant, metadata: { owner: { team: a } }, quota_mode: true, rate_limit: { unit: hour, requests_per_unit: 10 } }
  - { key: free, rate_limit: { unlimited: true } }
`

/**
 * Feeds `inputs` random bodies of calls of Envoy's rate limit service to three servers each: whole, byte by byte and in random pieces. Each is framed
 * Protocol Buffers with faults in it. All servers must answer the same: one well-formed response, or a status that is no fault of the service.
 *
 * @throws with the seed and the number of the input that failed.
 */
export async function fuzzGrpc(seed: number, inputs: number): Promise<void> {
  for (const { random, number, subjects } of fuzzRounds(seed, inputs, serverOf)) {
    const input = randomBody(random)
    await fuzzInput(seed, number, input, () => {
      const sizes = pieceSizes(input, () => random.magnitude(1, 64))
      const [whole, ...others] = subjects.map(({ method }, i) => answerTo(method, input, sizes[i] as () => number))
      for (const other of others) assert.deepEqual(other, whole, 'another answer in other pieces')
    })
  }
}

function serverOf(clock: Clock): { engine: Engine; method: UnaryMethod } {
  const { domains } = parseConfig(RULES)
  const engine = new Engine(
    domains.flatMap(({ policies }) => policies),
    { clock },
  )
  const limits = new RateLimits(engine, domains, undefined, () => clock.nowMs())
  return { engine, method: shouldRateLimit(limits, new Access([])) }
}

/** What a client receives. */
interface Answer {
  readonly status: string
  readonly message: string
  /** The frame of the response. */
  readonly body: Buffer | undefined
}

function answerTo(method: UnaryMethod, input: Buffer, pieceBytes: () => number): Answer {
  const stream = new AnsweredStream()
  CALLS.serve(stream as unknown as ServerHttp2Stream, {}, method, AT_ONCE)
  inPieces(input, pieceBytes, (piece) => stream.emit('data', piece))
  stream.emit('end')
  const { headers, trailers, body } = stream
  const { 'grpc-status': status, 'grpc-message': message = '' } = { ...headers, ...trailers }
  assert.match(String(status), /^\d+$/, 'the call has no status')
  assert.match(String(message), /^[ -~]*$/)
  assert.equal(status === '0', body !== undefined, 'a response has the status OK, and nothing else has it')
  if (body !== undefined) assertWellFormed(body)
  return { status: String(status), message: String(message), body }
}

function assertWellFormed(frame: Buffer): void {
  assert.equal(frame[0], 0)
  assert.equal(frame.readUInt32BE(1), frame.length - 5)
  const { overallCode, statuses } = fromBinary(RateLimitResponseSchema, frame.subarray(5))
  assert.ok(overallCode === 1 || overallCode === 2, `overall code ${overallCode}`)
  for (const { code } of statuses) assert.ok(code === 1 || code === 2, `code ${code}`)
}

function knownStatusOf(error: unknown): GrpcError {
  const known = error instanceof GrpcError ? error : statusOf(error)
  if (known === undefined) throw error
  return known
}

const GUARD = aGuard('grpc')
const AT_ONCE: Turns = {
  arrived() {},
  do(piece) {
    while (piece());
  },
}
const CALLS = new UnaryCalls({
  guard: GUARD,
  answer: new StreamAnswer(GUARD),
  maxMessageBytes: MAX_MESSAGE_BYTES,
  statusOf: knownStatusOf,
  holds() {},
})

/** The server's side of a call, without a connection. */
class AnsweredStream extends EventEmitter {
  headersSent = false
  readonly destroyed = false
  readonly closed = false
  readonly aborted = false
  headers: OutgoingHttpHeaders = {}
  trailers: OutgoingHttpHeaders = {}
  body: Buffer | undefined

  respond(headers: OutgoingHttpHeaders): void {
    assert.ok(!this.headersSent, 'a call is answered once')
    this.headersSent = true
    this.headers = headers
  }

  end(body: Buffer): void {
    this.body = body
    this.emit('wantTrailers')
  }

  sendTrailers(trailers: OutgoingHttpHeaders): void {
    this.trailers = trailers
  }

  resume(): void {}
}

/** Framed requests of Envoy's rate limit service, some of them with faults. */
export function randomBody(random: Random): Buffer {
  const frames = Array.from({ length: random.chance(0.9) ? 1 : random.integer(0, 3) }, () => randomFrame(random))
  const body = Buffer.concat(frames)
  return random.chance(0.3) ? damaged(random, body) : body
}

function randomFrame(random: Random): Buffer {
  const message = random.chance(0.2) ? damaged(random, randomRequest(random)) : randomRequest(random)
  const prefix = Buffer.alloc(5)
  if (random.chance(0.02)) prefix[0] = random.integer(1, 255)
  prefix.writeUInt32BE(random.chance(0.97) ? message.length : random.pick([0, 1, MAX_MESSAGE_BYTES, MAX_MESSAGE_BYTES + 1, 0xffff_ffff]), 1)
  return Buffer.concat([prefix, message])
}

function randomRequest(random: Random): Buffer {
  const fields: Buffer[] = []
  if (random.chance(0.95)) fields.push(delimited(1, Buffer.from(random.chance(0.9) ? 'web' : randomText(random))))
  for (let i = random.chance(0.98) ? random.integer(0, 3) : random.integer(100, 140); i > 0; i--) fields.push(randomDescriptor(random))
  if (random.chance(0.3)) fields.push(varintField(3, random.magnitude(1, 2 ** 32) - 1))
  if (random.chance(0.1)) fields.push(unknownField(random))
  return Buffer.concat(fields)
}

function randomDescriptor(random: Random): Buffer {
  const fields = Array.from({ length: random.chance(0.97) ? random.integer(0, 2) : random.integer(60, 70) }, () =>
    delimited(1, Buffer.concat([delimited(1, randomKey(random)), delimited(2, randomValue(random))])),
  )
  if (random.chance(0.1))
    fields.push(delimited(2, Buffer.concat([varintField(1, random.magnitude(1, 2 ** 32) - 1), varintField(2, random.integer(0, 9))])))
  if (random.chance(0.2)) fields.push(delimited(3, varintField(1, random.magnitude(1, 2 ** 53) - 1)))
  if (random.chance(0.1)) fields.push(varintField(4, random.integer(0, 1)))
  if (random.chance(0.1)) fields.push(unknownField(random))
  return delimited(2, Buffer.concat(fields))
}

function randomKey(random: Random): Buffer {
  return Buffer.from(random.chance(0.9) ? random.pick(['user', 'path', 'tenant', 'free']) : randomText(random))
}

function randomValue(random: Random): Buffer {
  if (random.chance(0.05)) return Buffer.from(Array.from({ length: random.magnitude(1, 40) }, () => random.integer(0, 255)))
  return Buffer.from(random.chance(0.7) ? random.pick(['alice', 'bob', '/a', '/ab', '']) : randomText(random))
}

function randomText(random: Random): string {
  const length = random.magnitude(1, random.chance(0.02) ? 2_000 : 12) - 1
  return Array.from({ length }, () => random.pick(['a', 'B', '*', '_', '/', '.', '\0', '\n', 'é', '漢', '😀', '\uFEFF', '|', '%'])).join('')
}

function unknownField(random: Random): Buffer {
  const field = random.integer(5, 2_000)
  const kind = random.integer(0, 4)
  if (kind === 0) return varintField(field, random.magnitude(1, 2 ** 53))
  if (kind === 1) return Buffer.concat([varint(field * 8 + 1), Buffer.alloc(8, 7)])
  if (kind === 2) return delimited(field, Buffer.from(randomText(random)))
  if (kind === 3) return Buffer.concat([varint(field * 8 + 5), Buffer.alloc(4, 7)])
  const depth = random.magnitude(1, 80)
  return Buffer.concat([...Array(depth).fill(varint(field * 8 + 3)), ...Array(depth).fill(varint(field * 8 + 4))])
}

function delimited(field: number, bytes: Buffer): Buffer {
  return Buffer.concat([varint(field * 8 + 2), varint(bytes.length), bytes])
}

function varintField(field: number, value: number): Buffer {
  return Buffer.concat([varint(field * 8), varint(value)])
}

function varint(value: number): Buffer {
  const bytes: number[] = []
  let rest = BigInt(value)
  for (; rest > 127n; rest >>= 7n) bytes.push(Number(rest & 127n) | 128)
  bytes.push(Number(rest))
  return Buffer.from(bytes)
}
