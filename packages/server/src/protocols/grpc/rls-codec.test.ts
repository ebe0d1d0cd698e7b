import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { shortOrLong } from 'sluicegate-testkit'
import { assignmentOf } from 'sluicegate-testkit/service/quota-client.js'
import type { LimitRequest, LimitResponse } from '../../envoy/limit-request.js'
import type { Assignment } from '../../quota/assignment.js'
import { grpcTimeoutMs, inTime } from './in-time.js'
import { framed, MessageReader } from './message-reader.js'
import { RateLimitQuotaResponseSchema, RateLimitQuotaUsageReportsSchema } from './messages/envoy/service/rate_limit_quota/v3/rlqs.gen.js'
import { RateLimitRequestSchema, RateLimitResponseSchema } from './messages/envoy/service/ratelimit/v3/rls.gen.js'
import { readUsageReports, writeActions } from './rlqs-codec.js'
import { limitResponseWriter } from './rls.js'
import { readLimitRequest } from './rls-codec.js'
import { GrpcError, STATUS } from './status.js'

const MESSAGES = shortOrLong(300, 1_000)
const MUTATIONS = shortOrLong(2_000, 4_000)

// The compiler's codec swallows a byte order mark.
const short = fc.oneof(fc.string({ maxLength: 12 }), fc.string({ unit: 'binary', maxLength: 6 })).map((one) => one.replaceAll('\uFEFF', ''))
const text = fc.oneof(short, fc.constantFrom('x'.repeat(130), 'y'.repeat(17_000)))
const uint32 = fc.oneof(fc.nat(300), fc.integer({ min: 0, max: 0xffff_ffff }))
const uint64 = fc.oneof(fc.nat(300).map(BigInt), fc.bigInt({ min: 0n, max: 2n ** 53n }))
const unit = fc.integer({ min: 0, max: 7 })

const requestOf = (label: fc.Arbitrary<string>) => {
  const descriptor = fc.record(
    {
      entries: fc.array(fc.record({ key: label, value: label }), { maxLength: 4 }),
      limit: fc.record({ requestsPerUnit: uint32, unit }),
      hitsAddend: uint64,
      isNegativeHits: fc.boolean(),
    },
    { requiredKeys: ['entries', 'isNegativeHits'] },
  )
  return fc.record({ domain: label, descriptors: fc.array(descriptor, { maxLength: 4 }), hitsAddend: uint32 })
}

/** What the codec of the compiler reads, in our form. */
function readByCompiler(bytes: Uint8Array): LimitRequest {
  const { domain, descriptors, hitsAddend } = fromBinary(RateLimitRequestSchema, bytes)
  return {
    domain,
    descriptors: descriptors.map(({ entries, limit, hitsAddend: hits, isNegativeHits }) => ({
      entries: entries.map(({ key, value }) => ({ key, value })),
      limit: limit && { requestsPerUnit: limit.requestsPerUnit, unit: limit.unit },
      hitsAddend: hits === undefined ? undefined : Number(hits),
      isNegativeHits,
    })),
    hitsAddend,
  }
}

test('requests are read as the compiler’s codec reads them', () => {
  fc.assert(
    fc.property(requestOf(text), (message) => {
      const bytes = toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, message as never))
      assert.deepEqual(readLimitRequest(bytes), readByCompiler(bytes))
    }),
    { numRuns: MESSAGES },
  )
})

test('fields that are not known are passed over, whatever their type', () => {
  const known = Buffer.from(toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, { domain: 'web', hitsAddend: 3 })))
  const unknown = [
    [0xf8, 0x01, 0x96, 0x01],
    [0xf9, 0x01, ...Array(8).fill(7)],
    [0xfa, 0x01, 3, 1, 2, 3],
    [0xfd, 0x01, 1, 2, 3, 4],
  ]
  for (const field of unknown) {
    const bytes = Buffer.concat([Buffer.from(field), known])
    assert.deepEqual(readLimitRequest(bytes), readByCompiler(bytes))
  }
})

test('responses are written so that the compiler’s codec reads what was meant', () => {
  const limit = fc.record({ requestsPerUnit: uint32, unit, name: text })
  const status = fc.record({
    over: fc.boolean(),
    limit: fc.option(limit, { nil: undefined }),
    remaining: uint32,
    resetS: fc.nat(40_000_000),
  })
  const response = fc.record({
    over: fc.boolean(),
    statuses: fc.array(status, { maxLength: 5 }),
    headers: fc.array(fc.tuple(text, text), { maxLength: 3 }),
    metadata: fc.option(fc.dictionary(text, fc.oneof(text, fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean())), {
      nil: undefined,
    }),
  })
  const writer = limitResponseWriter()
  fc.assert(
    fc.property(response, (message) => {
      const read = fromBinary(RateLimitResponseSchema, writer.write(message as LimitResponse))
      assert.equal(read.overallCode, message.over ? 2 : 1)
      assert.deepEqual(
        read.statuses.map(({ code, currentLimit, limitRemaining, durationUntilReset }) => ({
          over: code === 2,
          limit: currentLimit && { requestsPerUnit: currentLimit.requestsPerUnit, unit: currentLimit.unit, name: currentLimit.name },
          remaining: limitRemaining,
          resetS: Number(durationUntilReset?.seconds ?? 0n),
        })),
        message.statuses.map((one) => ({
          ...one,
          limit: one.limit && { ...one.limit, name: wellFormed(one.limit.name) },
          resetS: one.limit ? one.resetS : 0,
        })),
      )
      assert.deepEqual(
        read.responseHeadersToAdd.map(({ key, value }) => [key, value]),
        message.headers.map((header) => header.map(wellFormed)),
      )
      assert.equal(read.dynamicMetadata === undefined, message.metadata === undefined)
    }),
    { numRuns: MESSAGES },
  )
})

test('requests that follow each other are one request, as for the compiler’s codec', () => {
  fc.assert(
    fc.property(requestOf(short), requestOf(short), (first, second) => {
      const bytes = Buffer.concat(
        [first, second].map((one) => toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, one as never))),
      )
      assert.deepEqual(readLimitRequest(bytes), readByCompiler(bytes))
    }),
    { numRuns: MESSAGES },
  )
})

test('damaged requests are read or refused: nothing hangs, nothing crashes', () => {
  const mutation = fc.record({ at: fc.nat(), byte: fc.nat(255), kind: fc.constantFrom('set', 'cut', 'insert', 'repeat') })
  fc.assert(
    fc.property(requestOf(short), fc.array(mutation, { minLength: 1, maxLength: 4 }), (message, mutations) => {
      let bytes: Uint8Array = toBinary(RateLimitRequestSchema, create(RateLimitRequestSchema, message as never))
      for (const { at, byte, kind } of mutations) {
        const place = bytes.length === 0 ? 0 : at % bytes.length
        if (kind === 'set') bytes[place] = byte
        else if (kind === 'cut') bytes = bytes.slice(0, place)
        else if (kind === 'insert') bytes = Buffer.concat([bytes.slice(0, place), Uint8Array.of(byte), bytes.slice(place)])
        else bytes = Buffer.concat([bytes, bytes.slice(place)])
      }
      try {
        readLimitRequest(bytes)
      } catch (error) {
        if (!(error instanceof GrpcError)) throw error
      }
    }),
    { numRuns: MUTATIONS },
  )
})

function wellFormed(value: string): string {
  return new TextDecoder().decode(new TextEncoder().encode(value))
}

test('a decision in memory is returned as it is, at once', () => {
  assert.equal(inTime('decided', { headers: {}, timeoutMs: 20 }), 'decided')
})

test('a decision that a store does not give while the client waits is an error before the client’s own', async () => {
  const startMs = performance.now()
  await assert.rejects(async () => inTime(new Promise(() => {}), { headers: {}, timeoutMs: 200 }), { status: STATUS.deadlineExceeded })
  // Timers may fire a millisecond early.
  assert.ok(performance.now() - startMs >= 149)
})

test('a decision in time is returned, and so is its error', async () => {
  const call = { headers: {}, timeoutMs: 60_000 }
  assert.equal(await inTime(Promise.resolve('decided'), call), 'decided')
  await assert.rejects(async () => inTime(Promise.reject(new Error('outage')), call), /outage/)
})

test('a client that says no time waits for as long as it takes', () => {
  const never = new Promise(() => {})
  assert.equal(inTime(never, { headers: {}, timeoutMs: undefined }), never)
})

test('each unit of grpc-timeout is read, and nothing else', () => {
  const read = ['2H', '3M', '4S', '20m', '500u', '1000000n', '99999999m'].map(grpcTimeoutMs)
  assert.deepEqual(read, [7_200_000, 180_000, 4_000, 20, 0.5, 1, 99_999_999])
  for (const wrong of ['', '20', 'm', '-1m', '1.5S', '999999999m', '1s', undefined, ['1S']]) assert.equal(grpcTimeoutMs(wrong), undefined)
})

const messages = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 6 })

test('messages come out whole, wherever the bytes are split', () => {
  fc.assert(
    fc.property(messages, fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 9 }), (sent, sizes) => {
      const bytes = Buffer.concat(sent.map(framed))
      const reader = new MessageReader(100)
      const read: number[][] = []
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const size = sizes[i % sizes.length] as number
        reader.read(bytes.subarray(at, at + size), (message) => read.push([...message]))
        at += size
      }
      assert.deepEqual(
        read,
        sent.map((message) => [...message]),
      )
      assert.equal(reader.isInside, false)
    }),
  )
})

test('a message beyond the bound is refused before it arrives, and so is a compressed one', () => {
  const prefix = (compressed: number, length: number): Uint8Array => {
    const bytes = Buffer.alloc(5)
    bytes[0] = compressed
    bytes.writeUInt32BE(length, 1)
    return bytes
  }
  const read = (bytes: Uint8Array): void => new MessageReader(100).read(bytes, () => assert.fail())
  assert.throws(() => read(prefix(0, 101)), { name: 'GrpcError', status: 8 })
  assert.throws(() => read(prefix(0, 0xffff_ffff)), { name: 'GrpcError', status: 8 })
  assert.throws(() => read(prefix(1, 10)), { name: 'GrpcError', status: 12 })
})

describe('rlqs codec', () => {
  const MESSAGES = shortOrLong(500, 1_000)
  const MUTATIONS = shortOrLong(2_000, 4_000)

  const text = fc.string({ maxLength: 12 }).map((one) => one.replaceAll('\uFEFF', '').replaceAll('__proto__', ''))
  const count = fc.bigInt({ min: 0n, max: 2n ** 40n })
  const usage = fc.record({ bucket: fc.dictionary(text, text, { maxKeys: 5, noNullPrototype: true }), allowed: count, denied: count })
  const report = fc.record({ domain: text, usages: fc.array(usage, { maxLength: 5 }) })

  function written({ domain, usages }: typeof report extends fc.Arbitrary<infer Value> ? Value : never): Uint8Array {
    const bucketQuotaUsages = usages.map(({ bucket, allowed, denied }) => ({
      bucketId: { bucket },
      timeElapsed: { seconds: 5n },
      numRequestsAllowed: allowed,
      numRequestsDenied: denied,
    }))
    return toBinary(RateLimitQuotaUsageReportsSchema, create(RateLimitQuotaUsageReportsSchema, { domain, bucketQuotaUsages }))
  }

  test('reports are read as the compiler’s codec writes them', () => {
    fc.assert(
      fc.property(report, (value) => {
        const { domain, usages } = readUsageReports(written(value), 5)
        assert.equal(domain, value.domain)
        assert.deepEqual(
          usages.map(({ entries, allowed, denied }) => [
            Object.fromEntries(entries.map(({ key, value }) => [key, value])),
            allowed,
            denied,
          ]),
          value.usages.map(({ bucket, allowed, denied }) => [bucket, Number(allowed), Number(denied)]),
        )
      }),
      { numRuns: MESSAGES },
    )
  })

  const PLAIN = { noNullPrototype: true } as const
  const uint32 = fc.integer({ min: 1, max: 0xffff_ffff })
  const assignment: fc.Arbitrary<Assignment> = fc.oneof(
    fc.constant({ kind: 'abandon' as const }),
    fc.record({ kind: fc.constantFrom('allow' as const, 'deny' as const), ttlSeconds: fc.nat(3_600) }, PLAIN),
    fc.record(
      {
        kind: fc.constant('tokens' as const),
        bucket: fc.record({ maxTokens: uint32, tokensPerFill: uint32, fillSeconds: fc.integer({ min: 1, max: 3_600_000 }) }, PLAIN),
        ttlSeconds: fc.nat(3_600),
      },
      PLAIN,
    ),
  )
  const action = fc.record({ entries: fc.array(fc.record({ key: text, value: text }), { maxLength: 3 }), assignment })

  test('actions are read by the compiler’s codec as they were', () => {
    fc.assert(
      fc.property(fc.array(action, { maxLength: 5 }), (actions) => {
        const { bucketAction } = fromBinary(RateLimitQuotaResponseSchema, writeActions(actions))
        assert.deepEqual(
          bucketAction.map((action) => [{ ...action.bucketId?.bucket }, assignmentOf(action)]),
          actions.map(({ entries, assignment: expected }) => [Object.fromEntries(entries.map(({ key, value }) => [key, value])), expected]),
        )
      }),
      { numRuns: MESSAGES },
    )
  })

  test('bytes that are no report end in a status', () => {
    fc.assert(
      fc.property(report, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }), (value, changes) => {
        const bytes = written(value)
        for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte
        try {
          readUsageReports(bytes, 5)
        } catch (error) {
          assert.ok(error instanceof GrpcError, String(error))
        }
      }),
      { numRuns: MUTATIONS },
    )
  })

  test('a report of too many buckets is refused before it is read whole', () => {
    const message = new Uint8Array(20_000)
    for (let i = 0; i < message.length; i += 2) message[i] = 0x12
    assert.throws(() => readUsageReports(message, 1_000), { message: 'a report has at most 1000 buckets' })
  })
})
