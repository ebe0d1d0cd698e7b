import type { Random } from 'sluicegate-testkit'
import { randomBody } from '../fuzz/fuzz-grpc.js'
import { damaged } from '../fuzz/fuzz-input.js'

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')
const TYPE = {
  data: 0,
  headers: 1,
  priority: 2,
  resetStream: 3,
  settings: 4,
  pushPromise: 5,
  ping: 6,
  goAway: 7,
  windowUpdate: 8,
  continuation: 9,
} as const
const END_STREAM = 1
const END_HEADERS = 4
const PATHS = [
  '/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit',
  '/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas',
  '/kuadrant.service.ratelimit.v1.RateLimitService/CheckRateLimit',
  '/kuadrant.service.ratelimit.v1.RateLimitService/Report',
  '/kuadrant.service.ratelimit.v1.RateLimitService/Reserve',
  '/kuadrant.service.ratelimit.v1.RateLimitService/Commit',
  '/sluicegate.v1.Limiter/Take',
  '/sluicegate.v1.Limiter/TakeAll',
  '/sluicegate.v1.Limiter/Reserve',
  '/sluicegate.v1.Limiter/Commit',
  '/sluicegate.v1.Limiter/Refund',
  '/grpc.health.v1.Health/Check',
  '/grpc.health.v1.Health/List',
  '/grpc.health.v1.Health/Watch',
  '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo',
  '/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo',
  '/no.such.Service/Method',
]
const TIMEOUTS = ['1n', '1u', '1m', '20m', '0n', '99999999H', '-1m', 'x']

/** What a client of gRPC sends over one connection: frames of all types, most of them of calls, some with faults in them. */
export function randomHttp2(random: Random): Buffer {
  const frames = [...(random.chance(0.97) ? [PREFACE] : []), ...(random.chance(0.97) ? [frame(TYPE.settings, 0, 0, Buffer.alloc(0))] : [])]
  let lastStream = -1
  for (let calls = random.magnitude(1, 30); calls > 0; calls--) {
    if (random.chance(0.85)) {
      lastStream += 2
      frames.push(...randomCall(random, lastStream))
    }
    if (random.chance(0.3)) frames.push(randomFrame(random, Math.max(1, lastStream)))
  }
  const bytes = Buffer.concat(frames)
  return random.chance(0.15) ? damaged(random, bytes) : bytes
}

function randomCall(random: Random, stream: number): Buffer[] {
  const endsAtOnce = random.chance(0.05)
  const frames = [frame(TYPE.headers, END_HEADERS | (endsAtOnce ? END_STREAM : 0), stream, randomHeaders(random))]
  if (endsAtOnce) return frames
  const body = randomBody(random)
  const cut = random.chance(0.5) ? body : body.subarray(0, random.integer(0, body.length))
  for (let at = 0; at < cut.length; ) {
    const next = Math.min(cut.length, at + random.magnitude(1, 16_384))
    frames.push(frame(TYPE.data, 0, stream, cut.subarray(at, next)))
    at = next
    if (random.chance(0.05)) frames.push(resetStream(random, stream))
  }
  if (random.chance(0.7)) frames.push(frame(TYPE.data, END_STREAM, stream, Buffer.alloc(0)))
  if (random.chance(0.2)) frames.push(resetStream(random, stream))
  return frames
}

/** Of any type, also one that a client may not send, with a payload that need not fit. */
function randomFrame(random: Random, lastStream: number): Buffer {
  const stream = random.chance(0.7) ? lastStream : random.pick([0, 1, 2, 3, lastStream + 2, 0x7fff_ffff])
  const kind = random.integer(0, 12)
  if (kind === 0) return frame(TYPE.ping, random.integer(0, 1), 0, Buffer.alloc(8, 7))
  if (kind === 1) return frame(TYPE.goAway, 0, 0, words(lastStream, random.integer(0, 15)))
  if (kind === 2) return frame(TYPE.windowUpdate, 0, random.pick([0, stream]), words(random.pick([0, 1, 65_535, 0x7fff_ffff])))
  if (kind === 3) return frame(TYPE.priority, 0, stream, Buffer.concat([words(random.integer(0, 9)), Buffer.from([16])]))
  if (kind === 4) return frame(TYPE.settings, 0, 0, randomSettings(random))
  if (kind === 5) return frame(TYPE.settings, 1, 0, Buffer.alloc(0))
  if (kind === 6) return resetStream(random, stream)
  if (kind === 7) return frame(TYPE.headers, random.integer(0, 255), stream, randomHeaders(random))
  const payload = Buffer.from(Array.from({ length: random.magnitude(1, 40) - 1 }, () => random.integer(0, 255)))
  const type = random.chance(0.8) ? random.integer(0, 9) : random.integer(10, 255)
  return frame(type, random.integer(0, 255), stream, payload)
}

/** Each a number and its value: of header tables, streams, windows, frames and lists. */
function randomSettings(random: Random): Buffer {
  return Buffer.concat(
    Array.from({ length: random.integer(0, 3) }, () => {
      const setting = Buffer.alloc(6)
      setting.writeUInt16BE(random.integer(1, 8), 0)
      setting.writeUInt32BE(random.pick([0, 1, 4_096, 16_384, 65_535, 0x7fff_ffff, 0xffff_ffff]), 2)
      return setting
    }),
  )
}

function resetStream(random: Random, stream: number): Buffer {
  return frame(TYPE.resetStream, 0, stream, words(random.pick([0, 2, 5, 7, 8, 0xffff_ffff])))
}

function randomHeaders(random: Random): Buffer {
  const fields: (readonly [string, string])[] = [
    [':method', random.chance(0.97) ? 'POST' : 'GET'],
    [':scheme', 'http'],
    [':path', random.chance(0.98) ? random.pick(PATHS) : `/${'\u00e9x%'.repeat(random.magnitude(1, 8_000))}`],
    [':authority', 'a'],
    ['content-type', random.chance(0.97) ? 'application/grpc' : 'text/plain'],
    ['te', 'trailers'],
  ]
  if (random.chance(0.5)) fields.push(['grpc-timeout', random.pick(TIMEOUTS)])
  return Buffer.concat(fields.map(([name, value]) => Buffer.concat([Buffer.from([0]), text(name), text(value)])))
}

/** A text of HPACK without Huffman's code (RFC 7541, section 5.2). */
function text(value: string): Buffer {
  const bytes = Buffer.from(value, 'latin1')
  if (bytes.length < 127) return Buffer.concat([Buffer.from([bytes.length]), bytes])
  const length = [127]
  let rest = bytes.length - 127
  for (; rest > 127; rest >>= 7) length.push((rest & 127) | 128)
  length.push(rest)
  return Buffer.concat([Buffer.from(length), bytes])
}

function words(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length)
  for (const [i, value] of values.entries()) bytes.writeUInt32BE(value, 4 * i)
  return bytes
}

function frame(type: number, flags: number, stream: number, payload: Buffer): Buffer {
  const head = Buffer.alloc(9)
  head.writeUIntBE(payload.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream >>> 0, 5)
  return Buffer.concat([head, payload])
}
