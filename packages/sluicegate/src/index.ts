export type { Answered, Awaitable, Decided, When } from './awaitable.js'
export type { BanEvent, BanOptions } from './ban-options.js'
export { type AttachOptions, attachLimiter, createLimiter, type RestoreOptions, restoreLimiter } from './create-limiter.js'
export type { Decision, DecisionSource } from './decision/decision.js'
export type { DecisionCounts } from './decision/decision-counts.js'
export type { ContentionEvent, DenialEvent, EvictionEvent } from './decision/diagnostics.js'
export type { HotKey, HotKeys } from './decision/hot-keys.js'
export type { AnswerOf, Permit } from './decision/permit.js'
export type { Reservation } from './decision/reservation.js'
export { PolicyError, type PolicyErrorCode, StoreError, type StoreErrorCode } from './errors.js'
export type { Hold, OpenOptions } from './holds/hold.js'
export type { AnyHold, Metered } from './holds/metered.js'
export { type FirstOf, type FirstOfSource, firstOf } from './layers/first-of.js'
export type {
  BoundKey,
  Key,
  KeyList,
  KeysByName,
  Limiter,
  LimiterHandle,
  LimiterOptions,
  LimiterStats,
  LimiterVerbs,
  ReserveOptions,
  WaitOptions,
} from './limiter.js'
export { carryKey, tokensSpent } from './memory/carried-key.js'
export { following } from './memory/memory-holds.js'
export type { Overrides, WithOverrides } from './overrides.js'
export { allOf } from './policy/all-of.js'
export type { Calendar, CalendarUnit } from './policy/calendar.js'
export { levels } from './policy/levels.js'
export type { Algorithm, AllOfPolicy, ConcurrencyPolicy, Policy } from './policy/policy.js'
export {
  type ConcurrencyOptions,
  type CreditsOptions,
  concurrency,
  credits,
  type FixedWindowOptions,
  fixedWindow,
  gcra,
  type RateOptions,
  type SlidingLogOptions,
  type SlidingWindowOptions,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from './policy/single-policy.js'
export { createQueue } from './queue/create-queue.js'
export type { Overflow, OwnQueueOptions, QueueLimiter, QueueOptions, RunningJob, RunOptions, WrapOptions } from './queue/queue-options.js'
export { QueueError, type QueueErrorCode, type QueueStats, type QueueVerbs, type WorkQueue } from './queue/work-queue.js'
/** @internal */
export { rateLimit } from './rate-limit-elsewhere.js'
export type { ServerLoad, ShardLoads, SlotLoad } from './shared/calls/shard-load.js'
export type { OutageMode } from './shared/outage/local-share.js'
export type { OutageEvent } from './shared/outage/outage-account.js'
export type { RegionStats } from './shared/region-stats.js'
export type { SharedLimiter, SharedStats } from './shared/shared-limiter.js'
export type { SharedOptions } from './shared/shared-options.js'
export type { Store } from './shared/store.js'
export { type SlowDownOptions, type SlowedTakes, slowDown } from './slow-down.js'
export type { SoftLimitEvent, SoftLimitOptions, SoftThreshold } from './soft-limit-options.js'
export { type Clock, coarseClock, type ManualClock, manualClock, preciseClock, wallClock } from './time/clock.js'
export type { Duration } from './time/duration.js'
export type { Recording, WatchOptions } from './watch-options.js'
