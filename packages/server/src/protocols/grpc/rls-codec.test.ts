import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { shortOrLong } from 'sluicegate-testkit'
import type { LimitRequest, LimitResponse } from '../../envoy/limit-request.js'
import { RateLimitRequestSchema, RateLimitResponseSchema } from './messages/envoy/service/ratelimit/v3/rls.gen.js'
import { limitResponseWriter } from './rls.js'
import { readLimitRequest } from './rls-codec.js'
import { GrpcError } from './status.js'

const MESSAGES = shortOrLong(300, 2_000)
const MUTATIONS = shortOrLong(2_000, 10_000)

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
