import assert from 'node:assert/strict'
import { test } from 'node:test'
import { create, fromBinary, toBinary } from '@bufbuild/protobuf'
import fc from 'fast-check'
import { shortOrLong } from 'sluicegate-testkit'
import { assignmentOf } from 'sluicegate-testkit/service/quota-client.js'
import type { Assignment } from '../../quota/assignment.js'
import { RateLimitQuotaResponseSchema, RateLimitQuotaUsageReportsSchema } from './messages/envoy/service/rate_limit_quota/v3/rlqs.gen.js'
import { readUsageReports, writeActions } from './rlqs-codec.js'
import { GrpcError } from './status.js'

const MESSAGES = shortOrLong(500, 2_500)
const MUTATIONS = shortOrLong(2_000, 10_000)

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
        usages.map(({ entries, allowed, denied }) => [Object.fromEntries(entries.map(({ key, value }) => [key, value])), allowed, denied]),
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
