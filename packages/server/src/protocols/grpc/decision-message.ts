import type { MessageInitShape } from '@bufbuild/protobuf'
import type { DurationSchema } from '@bufbuild/protobuf/wkt'
import type { Decision } from '../../engine/engine.js'
import type { DecisionSchema } from './messages/sluicegate/v1/limiter.gen.js'

/** A decision as a message. */
export function decisionOf(decision: Decision): MessageInitShape<typeof DecisionSchema> {
  const { allowed, policy, limit, remaining, retryAfterMs, resetAfterMs, source, parts, soft = [] } = decision
  const impossible = retryAfterMs === Number.POSITIVE_INFINITY
  return {
    allowed,
    policy,
    limit: BigInt(limit),
    remaining: BigInt(remaining),
    ...(!impossible && { retryAfter: durationOf(retryAfterMs) }),
    resetAfter: durationOf(resetAfterMs),
    impossible,
    source,
    parts: parts?.map(decisionOf) ?? [],
    soft: [...soft],
  }
}

/** Whole milliseconds, rounded up. */
export function durationOf(ms: number): MessageInitShape<typeof DurationSchema> {
  const whole = Number.isFinite(ms) ? Math.ceil(ms) : 0
  return { seconds: BigInt(Math.floor(whole / 1_000)), nanos: (whole % 1_000) * 1_000_000 }
}
