import type { Entry } from '../../envoy/find-rule.js'
import type { Assignment } from '../../quota/assignment.js'
import type { BucketAction, BucketUsage } from '../../quota/quota-stream.js'
import { readEntry, writeEntry } from './entry-codec.js'
import { GrpcError, STATUS } from './status.js'
import { bytes, WireReader as Reader, varint, type WireReader } from './wire-reader.js'
import { WireWriter } from './wire-writer.js'

// The messages of proto/envoy/service/rate_limit_quota/v3/rlqs.proto, written by hand: a general codec would make the objects of a hostile report before
// their number is known.

const REPORTS = { domain: bytes(1), usages: bytes(2) }
const USAGE = { bucketId: bytes(1), allowed: varint(3), denied: varint(4) }
const BUCKET_ID = { bucket: bytes(1) }

const RESPONSE = { action: bytes(1) }
const ACTION = { bucketId: bytes(1), assignment: bytes(2), abandon: bytes(3) }
const ASSIGNMENT = { ttl: bytes(2), strategy: bytes(3) }
const STRATEGY = { blanket: varint(1), tokenBucket: bytes(3) }
const TOKEN_BUCKET = { maxTokens: varint(1), tokensPerFill: bytes(2), fillInterval: bytes(3) }
/** Of `google.protobuf.UInt32Value`, and the seconds of `google.protobuf.Duration`. */
const WRAPPED = varint(1)

/** Numbers of `RateLimitStrategy.BlanketRule`. */
const BLANKET = { allow: 0, deny: 1 } as const

/** Above any real count, and small enough for exact sums. */
const MOST_REQUESTS = 2 ** 40
const MAX_UINT32 = 0xffff_ffff
const MAX_DOMAIN_LENGTH = 256
/** Entries of a bucket id that are read; one more makes it invalid. */
const MAX_ENTRIES = 17
const NOTHING = new Uint8Array()

/** A `RateLimitQuotaUsageReports`. */
export interface UsageReports {
  /** Empty in all but the first of a stream, if the client likes. */
  readonly domain: string
  readonly usages: readonly BucketUsage[]
}

/** @throws {GrpcError} for bytes that are no such message, and for one with more than `maxUsages`. */
export function readUsageReports(message: Uint8Array, maxUsages: number): UsageReports {
  const reader = new Reader(message)
  const usages: BucketUsage[] = []
  let domain = ''
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === REPORTS.usages) {
      if (usages.length >= maxUsages) throw new GrpcError(STATUS.resourceExhausted, `a report has at most ${maxUsages} buckets`)
      usages.push(readUsage(reader))
    } else if (tag === REPORTS.domain) domain = reader.text()
    else reader.skip(tag)
  }
  if (domain.length > MAX_DOMAIN_LENGTH) throw new GrpcError(STATUS.invalidArgument, `a domain has at most ${MAX_DOMAIN_LENGTH} characters`)
  return { domain, usages }
}

function readUsage(outer: WireReader): BucketUsage {
  const entries: Entry[] = []
  let allowed = 0
  let denied = 0
  outer.message((reader) => {
    for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
      if (tag === USAGE.bucketId) readBucketId(reader, entries)
      else if (tag === USAGE.allowed) allowed = Math.min(MOST_REQUESTS, reader.uint64())
      else if (tag === USAGE.denied) denied = Math.min(MOST_REQUESTS, reader.uint64())
      else reader.skip(tag)
    }
  })
  return { entries, allowed, denied }
}

function readBucketId(outer: WireReader, entries: Entry[]): void {
  outer.message((reader) => {
    for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
      if (tag === BUCKET_ID.bucket && entries.length < MAX_ENTRIES) entries.push(readEntry(reader))
      else reader.skip(tag)
    }
  })
}

const writer = new WireWriter()

/** A `RateLimitQuotaResponse`. */
export function writeActions(actions: readonly BucketAction[]): Uint8Array {
  for (const { entries, assignment } of actions) {
    const action = writer.begin(RESPONSE.action)
    const id = writer.begin(ACTION.bucketId)
    for (const entry of entries) writeEntry(writer, BUCKET_ID.bucket, entry)
    writer.end(id)
    if (assignment.kind === 'abandon') writer.bytes(ACTION.abandon, NOTHING)
    else writeAssignment(assignment)
    writer.end(action)
  }
  return writer.take()
}

function writeAssignment(assignment: Exclude<Assignment, { kind: 'abandon' }>): void {
  const begun = writer.begin(ACTION.assignment)
  writeWrapped(ASSIGNMENT.ttl, assignment.ttlSeconds)
  const strategy = writer.begin(ASSIGNMENT.strategy)
  if (assignment.kind === 'tokens') {
    const { maxTokens, tokensPerFill, fillSeconds } = assignment.bucket
    const bucket = writer.begin(STRATEGY.tokenBucket)
    // A data plane is assigned no more than the type holds.
    writer.uint(TOKEN_BUCKET.maxTokens, Math.min(maxTokens, MAX_UINT32))
    writeWrapped(TOKEN_BUCKET.tokensPerFill, tokensPerFill)
    writeWrapped(TOKEN_BUCKET.fillInterval, fillSeconds)
    writer.end(bucket)
  } else writer.choice(STRATEGY.blanket, BLANKET[assignment.kind])
  writer.end(strategy)
  writer.end(begun)
}

function writeWrapped(tag: number, value: number): void {
  const begun = writer.begin(tag)
  writer.uint(WRAPPED, value)
  writer.end(begun)
}
