import type { Entry } from '../../envoy/find-rule.js'
import type { CurrentLimit, Descriptor, DescriptorStatus, LimitOverride, LimitRequest, LimitResponse } from '../../envoy/limit-request.js'
import { readEntry } from './entry-codec.js'
import { bytes, WireReader as Reader, varint, type WireReader } from './wire-reader.js'
import { WireWriter } from './wire-writer.js'

// The messages of proto/envoy/service/ratelimit/v3/rls.proto, written by hand: they are read and written with each request, in a fifth of the
// time that a general codec needs.

const MAX_UINT32 = 0xffff_ffff
const REQUEST = { domain: bytes(1), descriptors: bytes(2), hitsAddend: varint(3) }
const DESCRIPTOR = { entries: bytes(1), limit: bytes(2), hitsAddend: bytes(3), isNegativeHits: varint(4) }
const OVERRIDE = { requestsPerUnit: varint(1), unit: varint(2) }
const WRAPPED = varint(1)

const RESPONSE = { overallCode: varint(1), statuses: bytes(2), headers: bytes(3), metadata: bytes(6) }
const STATUS = { code: varint(1), limit: bytes(2), remaining: varint(3), reset: bytes(4) }
const LIMIT = { requestsPerUnit: varint(1), unit: varint(2), name: bytes(3) }
const DURATION = { seconds: varint(1) }
const HEADER = { key: bytes(1), value: bytes(2) }

/** Numbers of `RateLimitResponse.Code`. */
export const CODE = { ok: 1, overLimit: 2 } as const

/** @throws {GrpcError} for bytes that are no such message. */
export function readLimitRequest(message: Uint8Array): LimitRequest {
  const reader = new Reader(message)
  const descriptors: Descriptor[] = []
  let domain = ''
  let hitsAddend = 0
  for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
    if (tag === REQUEST.descriptors) descriptors.push(readDescriptor(reader))
    else if (tag === REQUEST.domain) domain = reader.text()
    else if (tag === REQUEST.hitsAddend) hitsAddend = reader.uint32()
    else reader.skip(tag)
  }
  return { domain, descriptors, hitsAddend }
}

/** The descriptor that comes next; requests of other services have them as well. */
function readDescriptor(outer: WireReader): Descriptor {
  const entries: Entry[] = []
  let limit: LimitOverride | undefined
  let hitsAddend: number | undefined
  let isNegativeHits = false
  outer.message((reader) => {
    for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
      if (tag === DESCRIPTOR.entries) entries.push(readEntry(reader))
      else if (tag === DESCRIPTOR.limit) limit = readOverride(reader, limit)
      else if (tag === DESCRIPTOR.hitsAddend) hitsAddend = readWrapped(reader, hitsAddend ?? 0)
      else if (tag === DESCRIPTOR.isNegativeHits) isNegativeHits = reader.bool()
      else reader.skip(tag)
    }
  })
  return { entries, limit, hitsAddend, isNegativeHits }
}

/** A message that comes twice is merged: what the later one leaves out stays. */
function readOverride(outer: WireReader, before: LimitOverride | undefined): LimitOverride {
  let { requestsPerUnit, unit } = before ?? { requestsPerUnit: 0, unit: 0 }
  outer.message((reader) => {
    for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
      if (tag === OVERRIDE.requestsPerUnit) requestsPerUnit = reader.uint32()
      else if (tag === OVERRIDE.unit) unit = reader.uint32()
      else reader.skip(tag)
    }
  })
  return { requestsPerUnit, unit }
}

/** `google.protobuf.UInt64Value`, and the seconds of `google.protobuf.Duration`. */
function readWrapped(outer: WireReader, before: number): number {
  let value = before
  outer.message((reader) => {
    for (let tag = reader.tag(); tag !== 0; tag = reader.tag()) {
      if (tag === WRAPPED) value = reader.uint64()
      else reader.skip(tag)
    }
  })
  return value
}

/** Writes responses; `writeMetadata` gives the bytes of a `google.protobuf.Struct`. */
export class LimitResponseWriter {
  readonly #writer = new WireWriter()
  readonly #writeMetadata: (metadata: Readonly<Record<string, unknown>>) => Uint8Array

  constructor(writeMetadata: (metadata: Readonly<Record<string, unknown>>) => Uint8Array) {
    this.#writeMetadata = writeMetadata
  }

  write({ over, statuses, headers, metadata }: LimitResponse): Uint8Array {
    const writer = this.#writer
    writer.uint(RESPONSE.overallCode, over ? CODE.overLimit : CODE.ok)
    for (const status of statuses) this.#status(status)
    for (const [key, value] of headers) {
      const begun = writer.begin(RESPONSE.headers)
      writer.text(HEADER.key, key)
      writer.text(HEADER.value, value)
      writer.end(begun)
    }
    if (metadata !== undefined) writer.bytes(RESPONSE.metadata, this.#writeMetadata(metadata))
    return writer.take()
  }

  #status({ over, limit, remaining, resetS }: DescriptorStatus): void {
    const writer = this.#writer
    const begun = writer.begin(RESPONSE.statuses)
    writer.uint(STATUS.code, over ? CODE.overLimit : CODE.ok)
    if (limit !== undefined) this.#limit(limit)
    // More than the type holds, as under a large burst, is said as the most that it holds.
    writer.uint(STATUS.remaining, Math.min(remaining, MAX_UINT32))
    if (limit !== undefined) {
      const reset = writer.begin(STATUS.reset)
      writer.uint(DURATION.seconds, resetS)
      writer.end(reset)
    }
    writer.end(begun)
  }

  #limit({ requestsPerUnit, unit, name }: CurrentLimit): void {
    const writer = this.#writer
    const begun = writer.begin(STATUS.limit)
    writer.uint(LIMIT.requestsPerUnit, requestsPerUnit)
    writer.uint(LIMIT.unit, unit)
    writer.text(LIMIT.name, name)
    writer.end(begun)
  }
}
